import os
import time

for _ in range(19):
    if os.fork() == 0:
        time.sleep(30)
        os._exit(0)
print("right")
