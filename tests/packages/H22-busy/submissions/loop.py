print("right", flush=True)
while True:
    pass
