import spans

spans.good()
assert spans.post(spans.body(spans.span(2, "search"))) == 200
