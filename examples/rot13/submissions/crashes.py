# Has no answer for empty input.
import codecs
import sys

text = sys.stdin.read()
first = text[0]
sys.stdout.write(codecs.encode(text, "rot13"))
