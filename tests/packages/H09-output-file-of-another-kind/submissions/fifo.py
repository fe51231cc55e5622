import os

os.mkfifo("out")
print("right")
