import os

os.mkdir("a", 0)
print("right")
