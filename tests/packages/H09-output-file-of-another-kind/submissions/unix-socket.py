import socket

socket.socket(socket.AF_UNIX).bind("out")
print("right")
