import os

os.mkdir("a")
os.mkfifo("a/out.txt")
os.chmod("a", 0)
print("right")
