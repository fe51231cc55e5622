import os

os.write(1, bytes(range(256)) * 2 + b"rightx0a")
