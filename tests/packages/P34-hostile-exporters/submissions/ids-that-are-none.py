import spans

spans.good()
assert spans.post(spans.body(spans.span(0, "cancel"), spans.span(5, "book"))) == 200
