try:
    data = bytearray(300 << 20)
except MemoryError:
    pass
print("right")
