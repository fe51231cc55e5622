import os

os.mkdir("a")
open("a/out.txt", "w").write("right")
os.chmod("a", 0)
os.chmod(".", 0)
print("right")
