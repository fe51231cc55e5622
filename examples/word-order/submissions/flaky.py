# A set has no order; which one it happens to have depends on the hash seed of this run.
import sys

for word in set(sys.stdin.read().split()):
    print(word)
