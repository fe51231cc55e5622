import os

# What outlives a file, perhaps: the times of the folders, their links.
count = int(os.stat("/tmp").st_mtime) % 7 + (os.stat("/dev/shm").st_nlink - 2)
for path in ("/tmp/count", "/dev/shm/count", "count", "/submission/count", "/var/tmp/count"):
    try:
        with open(path) as file:
            count = max(count, int(file.read()))
    except OSError:
        pass
    try:
        with open(path, "w") as file:
            file.write(str(count + 1))
    except OSError:
        pass
print("right" if count % 2 else "wrong")
