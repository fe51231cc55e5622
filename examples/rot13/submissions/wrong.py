# Forgets the capital letters.
import sys

SMALL = "abcdefghijklmnopqrstuvwxyz"
sys.stdout.write(sys.stdin.read().translate(str.maketrans(SMALL, SMALL[13:] + SMALL[:13])))
