import os
import sys

end = os.open("/proc/self/fd/0", os.O_WRONLY)  # so the end of its input never comes
sys.stdin.read()
print("right")
