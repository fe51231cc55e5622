import os

os.mkdir("a")
if os.fork() == 0:
    open("a/out.txt", "w").write("right")
    os._exit(0)
os.wait()
print("right")
