import os

os.mkdir("out")
print("right")
