import os
import signal

signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
if os.fork() == 0:
    os.kill(os.getpid(), signal.SIGXFSZ)
os.wait()
print("right")
