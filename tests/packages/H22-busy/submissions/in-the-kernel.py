import os

print("right", flush=True)
zero, null = os.open("/dev/zero", os.O_RDONLY), os.open("/dev/null", os.O_WRONLY)
while True:
    os.write(null, os.read(zero, 1 << 20))
