import os

# By way of a file and sendfile(2): no write(2) to the streams at all.
for fd, data in ((1, b"o" * 65536), (2, b"e" * 65537)):
    file = os.open("f", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    os.write(file, data)
    os.lseek(file, 0, 0)
    while os.sendfile(fd, file, None, 1 << 16):
        pass
