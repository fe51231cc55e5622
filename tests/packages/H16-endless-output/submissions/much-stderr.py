import sys

sys.stderr.write("x" * 1_000_000)
print("right")
