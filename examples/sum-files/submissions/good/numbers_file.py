from pathlib import Path


def read_numbers(file: Path) -> list[float]:
    return [float(line) for line in file.read_text().splitlines()]
