# Reads its input and then never ends.
import sys

text = sys.stdin.read()
while True:
    text = text[1:] + text[:1]
