import os

import spans

spans.body(spans.span(1), spans.span(2, "cancel"))
os._exit(0)
