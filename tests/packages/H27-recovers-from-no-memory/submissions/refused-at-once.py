try:
    data = bytearray(1 << 62)
except MemoryError:
    print("right")
