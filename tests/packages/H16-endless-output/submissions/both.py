import os

while True:
    os.write(2, bytes(1 << 16))
    os.write(1, bytes(1 << 16))
