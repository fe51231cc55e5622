import os

import spans

spans.good()
print(spans.post(os.urandom(1000)), spans.post(b'{"resourceSpans": 1}'), spans.post(b"[]"))
with spans.connect() as connection:
    connection.sendall(os.urandom(10_000) + b"\r\n\r\n")
    print(spans.answer(connection))
with spans.connect() as connection:
    connection.sendall(b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 100_000)
    print(spans.answer(connection))
