import spans

spans.good()
try:
    for _ in range(11_000):
        spans.connect().close()
except ConnectionError:
    print("refused")
