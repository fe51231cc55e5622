import os

for path in ("/dev/tty", "/dev/ptmx", "/dev/pts/ptmx", "/dev/console", "/dev/tty0"):
    try:
        os.open(path, os.O_RDWR | os.O_NOCTTY)
        print("opened", path)
    except OSError:
        pass
assert not os.isatty(0) and not os.isatty(1)
print("right")
