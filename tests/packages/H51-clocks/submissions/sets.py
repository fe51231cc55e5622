import ctypes
import time

for clock in (time.CLOCK_REALTIME, time.CLOCK_MONOTONIC, time.CLOCK_BOOTTIME):
    try:
        time.clock_settime(clock, 0)
        print("could")
    except OSError:
        pass
if ctypes.CDLL(None).adjtimex(ctypes.create_string_buffer(b"\x01" + bytes(255))) != -1:
    print("could adjust")
print("right")
