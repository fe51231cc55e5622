import os
import signal

signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
print("right", flush=True)
os.truncate(os.open("out.bin", os.O_CREAT | os.O_RDWR), 1 << 40)
