import os
import sys

if len(sys.argv) == 1:
    os.execve(sys.executable, [sys.executable, __file__] + ["x" * 100_000] * 10, {"BIG": "y" * 100_000})
print("right" if len(sys.argv) == 11 else "wrong")
