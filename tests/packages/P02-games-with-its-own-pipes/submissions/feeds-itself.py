import os

assert os.read(0, 100) == b"abc\n"
end = os.open("/proc/self/fd/0", os.O_WRONLY)
os.write(end, b"more\n")
assert os.read(0, 100) == b"more\n"
print("right")
