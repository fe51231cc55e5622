try:
    open("out.bin", "wb").truncate(1 << 40)
except OSError:
    print("right")
