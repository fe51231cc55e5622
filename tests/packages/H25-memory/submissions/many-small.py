import os
import time

print("right", flush=True)
for _ in range(12):
    if os.fork() == 0:
        data = bytearray(20 << 20)
        time.sleep(20)
        os._exit(0)
for _ in range(12):
    os.wait()
