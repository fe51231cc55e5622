import os

import mmap

os.mkdir("a")
file = os.open("a/out.txt", os.O_CREAT | os.O_RDWR)
os.ftruncate(file, 5)
mmap.mmap(file, 5)[:] = b"right"
print("right")
