import os

os.umask(0o777)
open("f", "w").close()
os.mkdir("d")
print("right")
