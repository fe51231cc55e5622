import os

pid = os.fork()
if pid == 0:
    data = bytearray(400 << 20)
    os._exit(0)
status = os.waitpid(pid, 0)[1]
print("right")
