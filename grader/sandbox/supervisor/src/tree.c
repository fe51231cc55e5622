/* Folders and files by relative path, one component at a time: no symlink is followed, no other file system entered. */
#define _GNU_SOURCE
#include "inside.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int enter(int folder, const char *name, dev_t device)
{
    struct stat s;
    int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -1;
    if (fstat(fd, &s) != 0 || s.st_dev != device) {
        close(fd);
        errno = EXDEV;
        return -1;
    }
    return fd;
}

/* Create `path` below `root` for writing. Folders are root's, 0755; see tree_give for /work. A descriptor, or -1 with
 * errno and `step`. */
int tree_put(int root, const char *path, int executable, mode_t file_mode, uint32_t owner, uint32_t *step, int *made_folder)
{
    char name[NAME_BYTES_MAX + 1];
    struct stat s;
    *step = PUT_PATH;
    if (!path_allowed((const uint8_t *)path, strlen(path))) {
        errno = EINVAL;
        return -1;
    }
    *step = PUT_FOLDER;
    int folder = fcntl(root, F_DUPFD_CLOEXEC, 0);
    if (folder < 0 || fstat(root, &s) != 0) {
        if (folder >= 0)
            close(folder);
        return -1;
    }
    const char *slash;
    while ((slash = strchr(path, '/')) != NULL) {
        memcpy(name, path, (size_t)(slash - path)); /* path_allowed: at most NAME_BYTES_MAX */
        name[slash - path] = 0;
        int next = -1;
        if (mkdirat(folder, name, 0755) == 0)
            *made_folder = 1;
        else if (errno != EEXIST)
            goto failed;
        next = enter(folder, name, s.st_dev);
        if (next < 0)
            goto failed;
        close(folder);
        folder = next;
        path = slash + 1;
    }
    *step = PUT_OPEN;
    int fd = openat(folder, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, file_mode | (executable ? 0111 : 0));
    if (fd < 0)
        goto failed;
    if (owner != 0 && fchown(fd, owner, owner) != 0) {
        int error = errno;
        close(fd);
        errno = error;
        goto failed;
    }
    close(folder);
    *step = PUT_OK;
    return fd;
failed:;
    int error = errno;
    close(folder);
    errno = error;
    return -1;
}

/* Give the folders below `root` to `owner`, inner ones first: once given away, root (without DAC_OVERRIDE) has no more
 * rights there than anybody. Only called on a tree that the core made itself, of bounded depth. */
int tree_give(int root, uint32_t owner, int depth)
{
    int copy = depth > (int)PATH_DEPTH_MAX ? -1 : openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = copy < 0 ? NULL : fdopendir(copy);
    if (list == NULL) {
        if (copy >= 0)
            close(copy);
        return -1;
    }
    struct dirent *entry;
    int result = 0;
    while (result == 0 && (errno = 0, entry = readdir(list)) != NULL) {
        if (entry->d_type != DT_DIR || strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        int fd = openat(root, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || tree_give(fd, owner, depth + 1) != 0 || fchown(fd, owner, owner) != 0)
            result = -1;
        if (fd >= 0)
            close(fd);
    }
    if (errno != 0)
        result = -1;
    closedir(list);
    return result;
}

/* Open what a run left at `path` below `root` without being led astray: openat2 where the kernel has it, else the same
 * walk by hand (nothing of the run is alive that could change the tree under it). O_NONBLOCK: a FIFO must not hang us. */
int tree_open(int root, const char *path)
{
    const int flags = O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY;
    struct open_how how = {.flags = (uint64_t)flags, .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV | RESOLVE_NO_MAGICLINKS};
    int fd = (int)syscall(SYS_openat2, root, path, &how, sizeof how);
    if (fd >= 0 || errno != ENOSYS)
        return fd;
    char name[NAME_BYTES_MAX + 1];
    struct stat s;
    if (fstat(root, &s) != 0)
        return -1;
    int folder = fcntl(root, F_DUPFD_CLOEXEC, 0);
    const char *slash;
    while (folder >= 0 && (slash = strchr(path, '/')) != NULL) {
        size_t size = (size_t)(slash - path);
        if (size == 0 || size > NAME_BYTES_MAX || strncmp(path, "../", 3) == 0 || strncmp(path, "./", 2) == 0) {
            close(folder);
            errno = EINVAL;
            return -1;
        }
        memcpy(name, path, size);
        name[size] = 0;
        int next = enter(folder, name, s.st_dev);
        int error = errno;
        close(folder);
        errno = error;
        folder = next;
        path = slash + 1;
    }
    if (folder < 0)
        return -1;
    fd = openat(folder, path, flags);
    int error = errno;
    close(folder);
    errno = error;
    return fd;
}
