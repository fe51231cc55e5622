import time

print("right", flush=True)
time.sleep(60)
