import os
import re
import socket
import sys

environment = {name: value for name, value in os.environ.items() if name not in ("WANTED", "LC_CTYPE")}
assert environment == {"HOME": "/work", "LANG": "C.UTF-8", "PATH": "/usr/local/bin:/usr/bin:/bin", "TZ": "UTC"}, environment
assert sys.argv == ["/submission/looks.py", "one"], sys.argv
assert socket.gethostname() == "box"
assert os.getcwd() == "/work" and os.listdir(".") == [] and os.listdir("/submission") == ["looks.py"]
assert sorted(int(fd) for fd in os.listdir("/proc/self/fd"))[:3] == [0, 1, 2]
assert os.getsid(0) == os.getpid() and os.getppid() == 1
told = open("/proc/self/mountinfo").read() + open("/proc/self/cgroup").read() + " ".join(os.listdir("/"))
assert not re.search(r"repetition|case[-_ ]?\d|profile|H46", told), told
assert b"H46" not in open("/proc/1/cmdline", "rb").read()
print("right")
