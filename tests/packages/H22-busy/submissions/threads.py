import hashlib
import threading


def burn():
    while True:
        hashlib.sha256(bytes(1 << 20))


print("right", flush=True)
for _ in range(8):
    threading.Thread(target=burn).start()
