def deep(n):
    return deep(n + 1)


try:
    deep(0)
except RecursionError:
    print("right")
