import os
import time

if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.kill(os.getpid(), 19)  # stopped: only SIGKILL gets through
        time.sleep(600)
    os._exit(0)
os.wait()
print("right", flush=True)
