import os
import time

import spans

spans.good()
if os.fork() == 0:
    os.setsid()
    while True:
        time.sleep(2)
        spans.post(spans.body(spans.span(3, "cancel")))
