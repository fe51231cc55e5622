import threading
import time

for _ in range(19):
    threading.Thread(target=time.sleep, args=(30,), daemon=True).start()
print("right")
