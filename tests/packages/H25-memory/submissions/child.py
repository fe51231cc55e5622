import os

if os.fork() == 0:
    data = bytearray(300 << 20)
    os._exit(0)
os.wait()
print("right")
