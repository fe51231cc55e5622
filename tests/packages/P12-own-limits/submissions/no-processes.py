import os
import resource

resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
try:
    os.fork()
    print("forked")
except OSError:
    print("right")
