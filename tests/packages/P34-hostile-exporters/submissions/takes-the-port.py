import socket

import spans

taken = socket.socket()
for address in ("127.0.0.1", "0.0.0.0"):
    try:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        taken.bind((address, spans.WHERE.port))
    except OSError as error:
        print(error)
    else:
        raise SystemExit("the port is mine")
spans.good()
