import os
import signal
import time

main = os.getpid()
if os.fork() == 0:
    time.sleep(0.2)
    os.kill(main, signal.SIGCONT)
    os._exit(0)
os.kill(main, signal.SIGSTOP)
print("right")
