import socket
import threading

server = socket.socket()
server.bind(("127.0.0.1", 8080))
server.listen()
threading.Thread(target=lambda: server.accept()[0].sendall(b"right")).start()
with socket.create_connection(("127.0.0.1", 8080)) as client:
    print(client.recv(100).decode())
