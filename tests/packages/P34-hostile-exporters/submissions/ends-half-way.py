import os

import spans

assert spans.post(spans.body(spans.span(2, "book"))) == 200
os._exit(0)  # the root never comes
