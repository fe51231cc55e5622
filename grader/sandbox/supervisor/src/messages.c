/* Fixed-size messages, and descriptors with them, between the core and the front. */
#define _GNU_SOURCE
#include "inside.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define SENT_FDS_MAX 253 /* SCM_MAX_FD of the kernel */

int message_send(int fd, const struct message *message, const int *fds, size_t count)
{
    struct iovec part = {(void *)(uintptr_t)message, sizeof *message};
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int) * START_FDS_COUNT)];
    } control;
    struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
    if (count > START_FDS_COUNT)
        return -1;
    if (count > 0) {
        memset(&control, 0, sizeof control);
        header.msg_control = control.bytes;
        header.msg_controllen = CMSG_SPACE(sizeof(int) * count);
        struct cmsghdr *c = CMSG_FIRSTHDR(&header);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int) * count);
        memcpy(CMSG_DATA(c), fds, sizeof(int) * count);
    }
    ssize_t sent;
    do
        sent = sendmsg(fd, &header, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)sizeof *message ? 0 : -1;
}

/* There is room for as many descriptors as a message can have, so that the kernel closes none of them for us, and what breaks
 * the rules is not closed here either: to close a socket can take as long as whoever opened it likes (SO_LINGER). After -1 the
 * caller ends, and an end does not wait for that. */
int message_receive(int fd, struct message *message, int *fds, size_t most)
{
    struct iovec part = {message, sizeof *message};
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int) * SENT_FDS_MAX)];
    } control;
    struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    for (size_t i = 0; i < most; i++)
        fds[i] = -1;
    ssize_t got;
    do
        got = recvmsg(fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return errno == EAGAIN ? 0 : -1;
    size_t taken = 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&header); c != NULL; c = CMSG_NXTHDR(&header, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        if (count > most - taken)
            return -1;
        memcpy(fds + taken, CMSG_DATA(c), count * sizeof(int));
        taken += count;
    }
    if (got != (ssize_t)sizeof *message || (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) || message->text_bytes > TEXT_MAX)
        return -1;
    message->text[TEXT_MAX - 1] = 0;
    return 1;
}
