with open("out.bin", "wb") as file:
    file.seek(1 << 40)
    file.write(b"x")
print("right")
