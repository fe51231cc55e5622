import os
import time

# Main ends at once; its child would print the answer later. The run is over with main.
if os.fork() == 0:
    time.sleep(5)
    print("right")
