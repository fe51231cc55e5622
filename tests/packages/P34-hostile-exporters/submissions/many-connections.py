import spans

for _ in range(3000):
    spans.connect().close()
spans.good()
