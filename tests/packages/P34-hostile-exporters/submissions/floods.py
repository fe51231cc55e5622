import spans

spans.good()
padding = "x" * 1_000_000
status, number = 200, 3
while status == 200:
    status = spans.post(spans.body(spans.span(number, "book", padding=padding)))
    number += 1
print(status, number)
