import os

print("right", flush=True)
if os.fork() == 0:
    while True:
        os.write(1, bytes(1 << 16))
os.wait()
