import os
import struct

RESULT, FATAL = 142, 145
body = struct.pack("<52Q", 0, 0, 0, 1, 0, *[0] * 47) + bytes(64)
for kind, run in ((RESULT, 0), (RESULT, 1), (FATAL, 0)):
    os.write(1, struct.pack("<HHIQ", kind, 0, len(body), run) + body)
print("right")
