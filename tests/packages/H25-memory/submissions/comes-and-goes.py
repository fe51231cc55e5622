for _ in range(40):
    data = bytearray(30 << 20)
    del data
print("right")
