import os

import fcntl

os.mkdir("a")
file = open("a/out.txt", "w")
file.write("right")
file.flush()
fcntl.lockf(file, fcntl.LOCK_EX)
fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
if os.fork() == 0:
    import time

    time.sleep(60)
print("right")
