import os

import spans

spans.good()
connection = spans.connect()
connection.sendall(spans.request(spans.body(spans.span(3, "cancel")))[:-10])
os._exit(0)
