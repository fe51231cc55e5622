import os

import threading

for _ in range(40):
    threading.Thread(target=lambda: [time.sleep(0.0005) for _ in range(10**9)]).start()
print("right", flush=True)
import time

while True:
    time.sleep(0.001)
