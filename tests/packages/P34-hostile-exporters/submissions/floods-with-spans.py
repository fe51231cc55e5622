import spans

spans.good()
number, status = 3, 200
while status == 200:
    status = spans.post(spans.body(*(spans.span(number + more, "book") for more in range(2_000))))
    number += 2_000
print(status, number)
