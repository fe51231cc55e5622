/* The writable places of a box, found in mountinfo and not assumed: what is emptied after a run, and proved empty. */
#define _GNU_SOURCE
#include "inside.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

/* File systems that hold no files of anybody's: nothing to scrub there. */
static int is_kernel_view(const char *type)
{
    static const char *const views[] = {"proc", "sysfs", "cgroup", "cgroup2", "devpts", "securityfs", "debugfs", "tracefs"};
    for (size_t i = 0; i < sizeof views / sizeof *views; i++)
        if (strcmp(type, views[i]) == 0)
            return 1;
    return 0;
}

static int has_option(const char *options, const char *name)
{
    size_t size = strlen(name);
    for (const char *at = options; at != NULL; at = strchr(at, ',')) {
        if (*at == ',')
            at++;
        if (strncmp(at, name, size) == 0 && (at[size] == ',' || at[size] == 0))
            return 1;
    }
    return 0;
}

/* mountinfo writes blank, tab, newline and backslash as \ooo. */
static void unescape(char *path)
{
    char *to = path;
    for (char *from = path; *from != 0; to++) {
        if (from[0] == '\\' && from[1] >= '0' && from[1] <= '3' && from[2] != 0 && from[3] != 0) {
            *to = (char)((from[1] - '0') * 64 + (from[2] - '0') * 8 + (from[3] - '0'));
            from += 4;
        } else {
            *to = *from++;
        }
    }
    *to = 0;
}

static int add(struct mounts *mounts, const char *path)
{
    struct stat s;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOTDIR ? 0 : -1; /* /etc/hosts and its like are files mounted alone: root's, see the facts */
    if (fstat(fd, &s) != 0) {
        close(fd);
        return -1;
    }
    int is_work = strcmp(path, WORK_PATH) == 0;
    if (!is_work && (s.st_uid != 0 || !(s.st_mode & S_IWOTH))) { /* programs cannot write at its root */
        close(fd);
        return 0;
    }
    if (mounts->count == MOUNTS_MAX || strlen(path) >= sizeof mounts->path[0]) {
        mounts->overflow = 1;
        close(fd);
        return 0;
    }
    size_t i = mounts->count++;
    mounts->fd[i] = fd;
    mounts->mode[i] = is_work ? 0700 : s.st_mode & 07777;
    strcpy(mounts->path[i], path);
    if (is_work)
        mounts->work = (int)i;
    return 0;
}

int mounts_open(struct mounts *mounts)
{
    memset(mounts, 0, sizeof *mounts);
    mounts->work = -1;
    /* Made root's and closed to others before it is looked at: a tmpfs is born 1777. */
    mounts->submission_fd = open(SUBMISSION_PATH, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (mounts->submission_fd < 0 || fchmod(mounts->submission_fd, 0755) != 0 || chmod(WORK_PATH, 0700) != 0)
        return -1;
    FILE *info = fopen("/proc/self/mountinfo", "re");
    if (info == NULL)
        return -1;
    char *line = NULL;
    size_t size = 0;
    int result = 0;
    while (result == 0 && getline(&line, &size, info) > 0) {
        char *path = NULL, *options = NULL, *type = NULL, *super = NULL, *save = NULL;
        int field = 0, after_dash = 0;
        for (char *word = strtok_r(line, " \n", &save); word != NULL; word = strtok_r(NULL, " \n", &save), field++) {
            if (field == 4)
                path = word;
            else if (field == 5)
                options = word;
            else if (field > 5 && after_dash == 0 && strcmp(word, "-") == 0)
                after_dash = 1;
            else if (after_dash > 0 && ++after_dash == 2)
                type = word;
            else if (after_dash == 4)
                super = word;
        }
        if (path == NULL || options == NULL || type == NULL)
            continue;
        unescape(path);
        if (is_kernel_view(type) || has_option(options, "ro") || (super != NULL && has_option(super, "ro")))
            continue;
        result = add(mounts, path);
    }
    free(line);
    fclose(info);
    if (result == 0 && mounts->work < 0)
        result = -1; /* /work must be a mount of its own */
    return result;
}

/* The descriptor was opened while the folder was root's, so what a program did to its mode does not matter here. */
int mount_is_empty(int fd)
{
    char buffer[4096];
    if (lseek(fd, 0, SEEK_SET) < 0)
        return -1;
    for (;;) {
        long count = syscall(SYS_getdents64, fd, buffer, sizeof buffer);
        if (count < 0)
            return -1;
        if (count == 0)
            return 1;
        for (long at = 0; at < count;) {
            const struct dirent64 *entry = (const struct dirent64 *)(const void *)(buffer + at);
            if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
                return 0;
            at += entry->d_reclen;
        }
    }
}

int mounts_are_empty(const struct mounts *mounts)
{
    for (size_t i = 0; i < mounts->count; i++) {
        int empty = mount_is_empty(mounts->fd[i]);
        if (empty != 1)
            return empty;
    }
    return mounts->overflow ? -1 : 1;
}

/* Extended attributes of the work folder itself would be a letter box between two runs. */
static int strip_attributes(int fd)
{
    char names[4096];
    ssize_t size = flistxattr(fd, names, sizeof names);
    if (size < 0)
        return errno == ENOTSUP || errno == ENOSYS ? 0 : -1;
    for (ssize_t at = 0; at < size; at += (ssize_t)strlen(names + at) + 1) {
        if (strncmp(names + at, "security.", 9) == 0)
            continue; /* the engine's own labels (SELinux); a program cannot set them */
        if (fremovexattr(fd, names + at) != 0 && errno != ENODATA)
            return -1;
    }
    int flags = 0;
    if (ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0 && (flags & FS_NODUMP_FL) != 0) {
        flags &= ~FS_NODUMP_FL;
        if (ioctl(fd, FS_IOC_SETFLAGS, &flags) != 0)
            return -1;
    }
    return 0;
}

int mounts_reset(const struct mounts *mounts)
{
    static const struct timespec fixed[2] = {{0, 0}, {0, 0}};
    for (size_t i = 0; i < mounts->count; i++) {
        int fd = mounts->fd[i];
        /* /work was the program's own. The others stayed root's: of their roots a program can only move the times. */
        if ((int)i == mounts->work && (fchown(fd, 0, 0) != 0 || fchmod(fd, mounts->mode[i]) != 0 || strip_attributes(fd) != 0))
            return -1;
        if (futimens(fd, fixed) != 0)
            return -1;
    }
    return 0;
}
