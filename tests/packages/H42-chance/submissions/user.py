import os

print("right" if os.getuid() % 2 else "wrong")
