import os

open(b"odd\n\xff.", "w").write("x")
made = 0
try:
    for index in range(10**6):
        open(f"f{index}", "w").close()
        made += 1
except OSError as error:
    assert error.errno == 28, error
assert 1000 < made < 5000, made
print("right")
