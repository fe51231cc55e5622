import os

import spans

children = []
for number in range(2, 12):
    child = os.fork()
    if child == 0:
        status = spans.post(spans.body(spans.span(number, "book")))
        os._exit(0 if status == 200 else 1)
    children.append(child)
assert [os.waitpid(child, 0)[1] for child in children] == [0] * 10
assert spans.post(spans.body(spans.span(1))) == 200
