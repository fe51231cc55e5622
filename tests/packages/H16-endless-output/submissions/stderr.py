import os

print("right", flush=True)
while True:
    os.write(2, bytes(1 << 20))
