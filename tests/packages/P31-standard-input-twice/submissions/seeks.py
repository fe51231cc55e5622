import os

try:
    os.lseek(0, 0, 0)
    print("could seek")
except OSError:
    print("right")
