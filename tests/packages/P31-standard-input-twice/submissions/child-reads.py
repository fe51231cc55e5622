import subprocess

assert subprocess.run(["cat"], capture_output=True).stdout == b"one\ntwo\n"
assert open(0).read() == ""
print("right")
