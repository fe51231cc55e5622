data = bytearray(300 << 20)
print("right")
