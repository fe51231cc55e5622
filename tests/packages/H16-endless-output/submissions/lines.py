while True:
    print("y")
