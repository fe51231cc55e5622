import os
import signal

if os.fork() == 0:
    os.kill(os.getpid(), signal.SIGSEGV)
os.wait()
print("right" if os.listdir(".") == [] and not os.path.exists("/tmp/core") else os.listdir("."))
