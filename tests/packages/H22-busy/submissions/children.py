import os

for _ in range(8):
    if os.fork() == 0:
        while True:
            pass
print("right", flush=True)
os.wait()
