import atexit

atexit.register(lambda: print("right"))
raise SystemExit(0)
