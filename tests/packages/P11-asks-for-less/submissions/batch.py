import os

os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
print("right", flush=True)
import time

while True:
    time.sleep(0.001)
