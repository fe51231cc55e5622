import ctypes

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
# A TiB of addresses: PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE.
assert libc.mmap(None, 1 << 40, 0, 0x4022, -1, 0) != ctypes.c_void_p(-1).value, ctypes.get_errno()
print("right")
