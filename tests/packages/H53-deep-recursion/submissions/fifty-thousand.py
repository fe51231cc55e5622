import sys

sys.setrecursionlimit(60_000)


def deep(n):
    return n if n == 0 else deep(n - 1)


assert deep(50_000) == 0
print("right")
