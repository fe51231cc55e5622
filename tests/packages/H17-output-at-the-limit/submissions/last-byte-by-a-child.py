import os
import time

os.write(1, b"x" * 100_000)
if os.fork() == 0:
    os.write(1, b"x")
    os._exit(0)
os.wait()
