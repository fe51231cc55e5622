import os
import signal

import spans

spans.good()
os.kill(os.getpid(), signal.SIGKILL)
