import array
import os
import socket

kept = []
for _ in range(40):
    one, two = socket.socketpair()
    kept += [one, two]
    one.setblocking(False)
    try:
        while True:
            one.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [1, one.fileno()]))])
    except OSError:
        pass
for _ in range(40):
    read, write = os.pipe()
    os.set_blocking(write, False)
    try:
        while True:
            os.write(write, bytes(65536))
    except OSError:
        pass
print("right")
