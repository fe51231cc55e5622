import os

os.mkdir("a")
file = open("a/out.txt", "w")
file.write("right")
file.flush()
os.unlink("a/out.txt")
print("right")
