import gzip

import spans

assert spans.post(gzip.compress(spans.body(spans.span(1))), "Content-Encoding: gzip") == 200
content = spans.body(spans.span(2, "book"))
chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (len(content), content)
assert spans.post(chunked, "Transfer-Encoding: chunked") == 200
with spans.connect() as connection:  # asks first, then two requests on one connection
    asked = spans.request(b"x" * 0, "Expect: 100-continue").replace(b"Content-Length: 0", b"Content-Length: %d" % len(content))
    connection.sendall(asked)
    assert b"100" in connection.recv(1000)
    connection.sendall(content)
    assert spans.answer(connection) == 200
    connection.sendall(spans.request(spans.body()))
    assert spans.answer(connection) == 200
