import time

print("right" if time.time_ns() // 1000 % 2 else "wrong")
