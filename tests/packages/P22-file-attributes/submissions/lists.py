import os
import struct

# user:: nothing, group:: nothing, other:: nothing, as access and default list.
LIST = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", tag, 0, 0xFFFFFFFF) for tag in (1, 4, 0x20))
for place in (".", "/tmp/d", "/dev/shm/d"):
    os.makedirs(place, exist_ok=True)
    os.makedirs(f"{place}/deep/er", exist_ok=True)
    for path in (f"{place}/deep/er", f"{place}/deep", place):
        for name in ("user.letter", "system.posix_acl_default", "system.posix_acl_access"):
            try:
                if name in os.listxattr(path) and name == "user.letter":
                    print("found", path)
                os.setxattr(path, name, b"x" if name == "user.letter" else LIST)
            except OSError:
                pass
print("right")
