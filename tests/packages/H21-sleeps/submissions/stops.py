import os

print("right", flush=True)
os.kill(os.getpid(), 19)
