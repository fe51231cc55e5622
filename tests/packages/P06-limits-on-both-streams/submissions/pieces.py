import os

for _ in range(65536):
    os.write(1, b"o")
    os.write(2, b"e")
os.write(2, b"e")
