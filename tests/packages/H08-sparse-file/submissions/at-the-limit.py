with open("out.bin", "wb") as file:
    file.seek((1 << 20) - 1)
    file.write(b"x")
print("right")
