try:
    with open("/tmp/f", "wb") as file:
        while True:
            file.write(bytes(1 << 16))
except OSError as error:
    print("right" if error.errno in (27, 28) else error)
