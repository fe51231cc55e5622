try:
    input()
except EOFError:
    print("right")
