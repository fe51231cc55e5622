import os

made = 0
try:
    while True:
        os.makedirs(f"/tmp/{made}/a/b/c/d")
        os.chmod(f"/tmp/{made}/a/b", 0)
        made += 1
except OSError:
    pass
print("right")
