import os

import fcntl

os.mkdir("a")
open("a/out.txt", "w").write("right")
try:
    fcntl.ioctl(os.open("a/out.txt", os.O_RDONLY), 0x40086602, (0x10).to_bytes(8, "little"))  # FS_IMMUTABLE_FL
except OSError:
    pass
print("right")
