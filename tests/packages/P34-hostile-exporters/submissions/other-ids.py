import spans

spans.good()
for number in range(100):  # of other runs, perhaps
    assert spans.post(spans.body(spans.span(1, trace=f"{number + 1:032x}"), spans.span(2, "book", trace=f"{number + 1:032x}"))) == 200
