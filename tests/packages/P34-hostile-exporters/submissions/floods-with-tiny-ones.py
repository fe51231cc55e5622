import spans

spans.good()
with spans.connect() as connection:
    one = spans.request(spans.body(spans.span(3, "book")))
    try:
        for _ in range(200):
            connection.sendall(one * 150)
            connection.recv(1 << 20)
    except ConnectionError:
        pass
