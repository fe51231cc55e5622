import os

os.mkdir("b")
open("b/x", "w").write("right")
os.rename("b/x", "b/out.txt")
os.rename("b", "a")
print("right")
