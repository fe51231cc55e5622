import os

# None of them lives long enough to be seen by a look now and then.
print("right", flush=True)
while True:
    if os.fork() == 0:
        sum(range(20_000))
        os._exit(0)
    os.wait()
