import os

open(b"odd\n\xff.", "w").write("x")
for name in (b"\n", b"\xff\xfe", b"a" * 255, b"-rf", b"*", b"$(id)", b" ", b".x\x1b[2J", "\u202e".encode(), b"\\"):
    os.mkdir(name)
    open(name + b"/" + name, "w").close()
    open(b"/tmp/" + name, "w").close()
print("right")
