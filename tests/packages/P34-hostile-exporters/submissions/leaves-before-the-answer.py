import os

import spans

connection = spans.connect()
connection.sendall(spans.request(spans.body(spans.span(1), spans.span(2, "book"))))
os._exit(0)
