import os

for i in range(199):
    open(f"f{i}", "w").write("x")
os.mkdir("f199")
print("right")
