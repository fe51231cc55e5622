import sys

SMALL = bytes(range(ord("a"), ord("z") + 1))
LARGE = SMALL.upper()
TABLE = bytes.maketrans(SMALL + LARGE, SMALL[13:] + SMALL[:13] + LARGE[13:] + LARGE[:13])

sys.stdout.buffer.write(sys.stdin.buffer.read().translate(TABLE))
