import os

open(b"odd\n\xff.", "w").write("x")
os.chdir("/tmp")
depth = 0
try:
    for depth in range(5000):
        os.mkdir("d")
        os.chdir("d")
except OSError as error:
    assert error.errno in (28, 36), error
assert depth > 2000, depth
os.chmod(".", 0)
print("right")
