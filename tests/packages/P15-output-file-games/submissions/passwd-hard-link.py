import os

os.mkdir("a")
try:
    os.link("/etc/passwd", "a/out.txt")
except OSError:
    pass
print("right")
