import os

os.write(2, b"e" * 65538)
os.write(1, b"o" * 65536)
