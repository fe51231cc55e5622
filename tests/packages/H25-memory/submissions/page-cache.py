import glob

read = 0
for path in glob.glob("/usr/lib/**/*", recursive=True):
    try:
        read += len(open(path, "rb").read(1 << 22))
    except OSError:
        pass
assert read > 50 << 20, read
print("right")
