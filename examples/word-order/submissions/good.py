import sys

for word in dict.fromkeys(sys.stdin.read().split()):
    print(word)
