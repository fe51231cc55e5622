assert len(open("/dev/urandom", "rb").read(1000)) == 1000
assert open("/dev/zero", "rb").read(10) == bytes(10)
open("/dev/null", "wb").write(b"x")
try:
    open("/dev/full", "wb", buffering=0).write(b"x")
except OSError as error:
    assert error.errno == 28
print("right")
