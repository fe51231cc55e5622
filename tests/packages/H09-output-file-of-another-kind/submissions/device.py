import os
import stat

try:
    os.mknod("out", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
except OSError:
    pass
print("right")
