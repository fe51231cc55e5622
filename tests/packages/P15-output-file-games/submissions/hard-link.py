import os

os.mkdir("a")
open("b", "w").write("right")
os.link("b", "a/out.txt")
print("right")
