#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* Deleted, but open: still on the disk, which is full in the end. */
int main(void)
{
    static char block[1 << 16];
    long written = 0;
    for (int i = 0; i < 200; i++) {
        int fd = open("/tmp/f", O_CREAT | O_RDWR | O_EXCL, 0600);
        if (fd < 0 || unlink("/tmp/f") != 0)
            break;
        for (int j = 0; j < 16; j++) {
            ssize_t now = write(fd, block, sizeof block);
            written += now > 0 ? now : 0;
        }
    }
    return written > 16 << 20 || puts("right") < 0;
}
