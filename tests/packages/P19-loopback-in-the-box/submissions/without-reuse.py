import socket

# Closes first, so that TIME_WAIT is on its side.
server = socket.socket()
server.bind(("127.0.0.1", 8081))
server.listen()
client = socket.create_connection(("127.0.0.1", 8081))
other, _ = server.accept()
other.close()
client.close()
server.close()
print("right")
