import os

for place in (".", "/tmp", "/dev/shm"):
    os.mkdir(f"{place}/d")
    os.mkdir(f"{place}/d/e")
    try:
        with open(f"{place}/d/e/f", "wb", buffering=0) as file:
            while True:
                file.write(bytes(1 << 12))
    except OSError:
        pass
print("right")
