import sys
from pathlib import Path

from numbers_file import read_numbers

numbers = read_numbers(Path("numbers.txt"))
Path("sum.txt").write_text(f"{sum(numbers)}\n")
if "--verbose" in sys.argv:
    print(len(numbers), "numbers")
