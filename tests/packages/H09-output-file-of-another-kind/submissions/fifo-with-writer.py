import os
import time

os.mkfifo("out")
if os.fork() == 0:
    with open("out", "wb") as file:
        file.write(b"x")
    time.sleep(60)
print("right")
