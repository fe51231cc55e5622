import os

block = bytes(8 << 20)
while True:
    os.write(1, block)
