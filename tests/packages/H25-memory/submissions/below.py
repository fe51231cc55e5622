data = bytearray(30 << 20)
print("right")
