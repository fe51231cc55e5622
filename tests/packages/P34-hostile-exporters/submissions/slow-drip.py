import time

import spans

connection = spans.connect()
connection.setsockopt(6, 1, 1)  # TCP_NODELAY
for byte in spans.request(spans.body(spans.span(1), spans.span(2, "book"))):
    connection.sendall(bytes([byte]))
    time.sleep(0.0002)
assert spans.answer(connection) == 200
