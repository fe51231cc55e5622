import os
import time

if os.fork() == 0:
    time.sleep(60)
os.wait()
print("right")
