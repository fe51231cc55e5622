import os

os.nice(9)
print("right", flush=True)
import time

while True:
    time.sleep(0.001)
