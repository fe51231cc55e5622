import os
import sys

expected = [b"", b" ", b"-rf", b"a b", b"$(id)", b"'\"", b"new\nline", b"\xff\xfe", b"*", b"`id`", b"; exit 3", b"--", b"\xc3\xa9", b"{entry}", b"%s%n"]
assert [os.fsencode(argument) for argument in sys.argv[1:]] == expected, sys.argv
assert os.environb[b"EMPTY"] == b"" and os.environb[b"ODD"] == b"a=b\nc" and os.environb[b"BYTES"] == b"\xff\xfe"
assert os.environb[b"PATH"] == b"/nowhere:/usr/bin"
assert sys.stdin.read() == "$(id)\n"
assert sorted(os.listdir()) == ["-rf", "a b"]
print("right")
