import os

os.write(1, b"x" * 100_000)
os.write(2, b"x" * 200_000)
