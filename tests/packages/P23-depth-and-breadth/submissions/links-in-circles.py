import os

os.mkdir("a")
os.symlink("../a", "a/b")
os.symlink("/", "root")
os.symlink("/proc/self/cwd", "here")
for i in range(1000):
    os.symlink(f"l{i + 1}", f"l{i}")
open("f", "w").close()
for i in range(500):
    os.link("f", f"h{i}")
print("right")
