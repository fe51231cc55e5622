import spans

spans.good()
