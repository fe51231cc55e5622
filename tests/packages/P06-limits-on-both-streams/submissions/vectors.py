import os

os.writev(1, [b"o" * 64] * 1024)
os.writev(2, [b"e" * 64] * 1024)
os.write(2, b"e")
