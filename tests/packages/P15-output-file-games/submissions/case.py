import os

os.mkdir("A")
open("A/OUT.TXT", "w").write("right")
print("right")
