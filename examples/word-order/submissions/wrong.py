# Always the same order, and the wrong one.
import sys

for word in sorted(set(sys.stdin.read().split())):
    print(word)
