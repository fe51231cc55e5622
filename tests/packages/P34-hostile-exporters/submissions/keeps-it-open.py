import spans

connections = [spans.connect() for _ in range(40)]
connections[0].sendall(spans.request(spans.body(spans.span(1), spans.span(2, "book"))))
assert spans.answer(connections[0]) == 200
