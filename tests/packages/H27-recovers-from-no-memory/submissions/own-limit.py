import resource

# A program may limit itself, and see the error.
resource.setrlimit(resource.RLIMIT_AS, (48 << 20, 48 << 20))
try:
    data = bytearray(100 << 20)
except MemoryError:
    print("right")
