import os
import socket

one, two = socket.socketpair()
one.send(b"right")
print(two.recv(10).decode())
server = socket.socket(socket.AF_UNIX)
server.bind("\0name")
