import locale
import os
import socket
import time

assert len(os.sched_getaffinity(0)) == 1
assert socket.gethostname() == "box"
assert time.tzname == ("UTC", "UTC")
assert locale.getpreferredencoding() == "UTF-8"
print("right")
