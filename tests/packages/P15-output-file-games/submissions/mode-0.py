import os

os.mkdir("a")
open("a/out.txt", "w").write("right")
os.chmod("a/out.txt", 0)
print("right")
