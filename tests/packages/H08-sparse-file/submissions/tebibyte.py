with open("out.bin", "wb") as file:
    file.truncate(1 << 40)
print("right")
