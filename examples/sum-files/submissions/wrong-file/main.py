# Prints the sum instead of writing the file.
from pathlib import Path

numbers = [float(line) for line in Path("numbers.txt").read_text().splitlines()]
print(len(numbers), "numbers")
print(sum(numbers))
