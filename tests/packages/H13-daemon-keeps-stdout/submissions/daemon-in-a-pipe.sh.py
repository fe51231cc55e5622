import os
import time

if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.open('/proc/self/fd/1', os.O_RDONLY)  # even the reading end
        time.sleep(600)
    os._exit(0)
os.wait()
print("right", flush=True)
