/* The hand: when every process of a run is dead, a child with the run's own id picks up the output files, streams what a
 * compiler made, and removes the rest. It can do no more than the program could. */
#define _GNU_SOURCE
#include "inside.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define SCRUB_BUDGET_NS (20 * NS_PER_S)

static uint8_t copy_buffer[PAYLOAD_MAX];

static _Noreturn void give_up(void) { _exit(1); }

static void write_all(int fd, const void *data, size_t size)
{
    const uint8_t *at = data;
    while (size > 0) {
        ssize_t written = write(fd, at, size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            give_up();
        at += written;
        size -= (size_t)written;
    }
}

static uint8_t kind_of(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFREG: return KIND_REGULAR;
    case S_IFDIR: return KIND_FOLDER;
    case S_IFLNK: return KIND_LINK;
    case S_IFIFO: return KIND_FIFO;
    case S_IFSOCK: return KIND_SOCKET;
    case S_IFCHR: return KIND_CHARACTER;
    case S_IFBLK: return KIND_BLOCK;
    default: return KIND_OTHER;
    }
}

/* Nothing else is alive, so the size cannot change under us; if it does all the same, the run is not to be trusted. */
static void write_content(int out, int fd, uint64_t size)
{
    while (size > 0) {
        size_t part = size < sizeof copy_buffer ? (size_t)size : sizeof copy_buffer;
        ssize_t got = read(fd, copy_buffer, part);
        if (got <= 0)
            give_up();
        write_all(out, copy_buffer, (size_t)got);
        size -= (uint64_t)got;
    }
}

/* A program may have taken its own rights to the folders on the way to `path` away; they get them back, one by one. A link
 * among them is not followed. */
static void open_the_way(int work, const char *path)
{
    char name[NAME_BYTES_MAX + 1];
    struct stat s;
    int folder = fcntl(work, F_DUPFD_CLOEXEC, 0);
    for (const char *slash; folder >= 0 && (slash = strchr(path, '/')) != NULL; path = slash + 1) {
        memcpy(name, path, (size_t)(slash - path)); /* path_allowed: at most NAME_BYTES_MAX */
        name[slash - path] = 0;
        int next = -1;
        if (fstatat(folder, name, &s, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(s.st_mode) && fchmodat(folder, name, 0700, 0) == 0)
            next = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        close(folder);
        folder = next;
    }
    if (folder >= 0)
        close(folder);
}

static void collect_one(const struct hand_job *job, int work, const char *path, uint32_t index, uint64_t *left)
{
    struct hand_item item = {.kind = HAND_FILE, .index = index};
    struct stat s;
    int fd = -1;
    /* Looked at before it is opened: opening a device or FIFO can have effects, and a socket cannot be opened at all. */
    int seen = fstatat(work, path, &s, AT_SYMLINK_NOFOLLOW);
    if (seen != 0 && errno == EACCES) {
        open_the_way(work, path);
        seen = fstatat(work, path, &s, AT_SYMLINK_NOFOLLOW);
    }
    if (seen == 0 && !S_ISREG(s.st_mode)) {
        item.status = FILE_NOT_REGULAR;
        item.file_kind = kind_of(s.st_mode);
        item.mode = s.st_mode & 07777;
        write_all(job->out, &item, sizeof item);
        return;
    }
    fd = tree_open(work, path);
    if (fd < 0 && errno == EACCES && fchmodat(work, path, 0600, 0) == 0)
        fd = tree_open(work, path); /* nor is a file that it may not read itself gone */
    if (fd < 0) {
        item.error = (uint32_t)errno;
        item.status = errno == ENOENT || errno == ENOTDIR ? FILE_MISSING : FILE_REFUSED;
    } else if (fstat(fd, &s) != 0) {
        give_up();
    } else {
        item.mode = s.st_mode & 07777;
        item.file_kind = kind_of(s.st_mode);
        item.size = (uint64_t)s.st_size;
        item.allocated = (uint64_t)s.st_blocks * 512;
        if (!S_ISREG(s.st_mode))
            item.status = FILE_NOT_REGULAR;
        else if (item.size > job->request[Q_COLLECT_FILE])
            item.status = FILE_TOO_BIG;
        else if (item.size > *left)
            item.status = FILE_REFUSED;
        else
            item.content_bytes = item.size;
    }
    *left -= item.content_bytes;
    write_all(job->out, &item, sizeof item);
    if (item.content_bytes > 0)
        write_content(job->out, fd, item.content_bytes);
    if (fd >= 0)
        close(fd);
}

static void collect(const struct hand_job *job, int work)
{
    struct stat s;
    uint64_t count = job->request[Q_FILEC], left = job->request[Q_COLLECT_TOTAL];
    if (count == 0)
        return;
    size_t size = job->strings->text_bytes, at = 0;
    const char *strings = job->strings->text;
    if (count > COLLECT_MAX)
        give_up();
    if (job->strings->fd >= 0) {
        if (fstat(job->strings->fd, &s) != 0 || s.st_size <= 0 || s.st_size > (off_t)STRINGS_MAX)
            give_up();
        size = (size_t)s.st_size;
        strings = mmap(NULL, size, PROT_READ, MAP_PRIVATE, job->strings->fd, 0);
        if (strings == MAP_FAILED)
            give_up();
    }
    uint64_t first = job->request[Q_ARGC] + job->request[Q_ENVC];
    for (uint64_t i = 0; i < first + count; i++) {
        const char *end = at < size ? memchr(strings + at, 0, size - at) : NULL;
        if (end == NULL)
            give_up();
        if (i >= first) {
            if (!path_allowed((const uint8_t *)strings + at, (size_t)(end - (strings + at))))
                give_up();
            collect_one(job, work, strings + at, (uint32_t)(i - first), &left);
        }
        at = (size_t)(end - strings) + 1;
    }
}

struct keeping {
    const struct hand_job *job;
    uint64_t files, bytes, skipped, reported;
    int complete;
    char path[PATH_BYTES_MAX + 1];
};

static void skip(struct keeping *keep, uint8_t kind, int error, size_t path_bytes)
{
    keep->skipped++;
    if (kind == KIND_REGULAR || kind == SKIP_OVER_CAP || kind == SKIP_UNREADABLE)
        keep->complete = 0;
    if (keep->reported++ >= SKIPPED_MAX)
        return;
    struct hand_item item = {.kind = HAND_SKIPPED, .file_kind = kind, .error = (uint32_t)error, .path_bytes = (uint32_t)path_bytes};
    write_all(keep->job->out, &item, sizeof item);
    write_all(keep->job->out, keep->path, path_bytes);
}

static void keep_file(struct keeping *keep, int folder, const char *name, const struct stat *s, size_t path_bytes)
{
    uint64_t size = (uint64_t)s->st_size;
    if (keep->files >= keep->job->request[Q_KEEP_FILES] || size > keep->job->request[Q_KEEP_BYTES] - keep->bytes) {
        skip(keep, SKIP_OVER_CAP, 0, path_bytes);
        return;
    }
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno == EACCES && fchmodat(folder, name, 0600, 0) == 0)
        fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        skip(keep, SKIP_UNREADABLE, errno, path_bytes);
        return;
    }
    if (s->st_mode & (S_ISUID | S_ISGID | S_ISVTX))
        skip(keep, SKIP_SET_ID, 0, path_bytes);
    struct hand_item item = {.kind = HAND_KEPT, .executable = (s->st_mode & 0111) != 0, .path_bytes = (uint32_t)path_bytes,
                             .size = size, .content_bytes = size};
    write_all(keep->job->out, &item, sizeof item);
    write_all(keep->job->out, keep->path, path_bytes);
    write_content(keep->job->out, fd, size);
    close(fd);
    keep->files++;
    keep->bytes += size;
}

/* Depth first, one open folder per level; `used` bytes of keep->path lead here, with a slash at the end if not empty. */
static void keep_folder(struct keeping *keep, int folder, size_t used, unsigned depth)
{
    int copy = fcntl(folder, F_DUPFD_CLOEXEC, 0);
    DIR *list = copy < 0 ? NULL : fdopendir(copy);
    if (list == NULL)
        give_up();
    rewinddir(list); /* a copy shares its position, and whoever looked whether the folder is empty has read to its end */
    struct dirent *entry;
    while ((errno = 0, entry = readdir(list)) != NULL) {
        struct stat s;
        size_t size = strlen(entry->d_name);
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (used + size + 1 > PATH_BYTES_MAX) {
            skip(keep, SKIP_UNREADABLE, ENAMETOOLONG, used > 0 ? used - 1 : 0);
            continue;
        }
        memcpy(keep->path + used, entry->d_name, size);
        if (fstatat(folder, entry->d_name, &s, AT_SYMLINK_NOFOLLOW) != 0) {
            skip(keep, SKIP_UNREADABLE, errno, used + size);
        } else if (S_ISREG(s.st_mode)) {
            if (depth > PATH_DEPTH_MAX)
                skip(keep, SKIP_UNREADABLE, ENAMETOOLONG, used + size);
            else
                keep_file(keep, folder, entry->d_name, &s, used + size);
        } else if (!S_ISDIR(s.st_mode)) {
            skip(keep, kind_of(s.st_mode), 0, used + size);
        } else {
            int next = -1;
            if (depth >= PATH_DEPTH_MAX)
                errno = ENAMETOOLONG;
            else if ((s.st_mode & 0700) == 0700 || fchmodat(folder, entry->d_name, 0700, 0) == 0)
                next = openat(folder, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            if (next < 0) {
                skip(keep, SKIP_UNREADABLE, errno, used + size);
                continue;
            }
            keep->path[used + size] = '/';
            keep_folder(keep, next, used + size + 1, depth + 1);
            close(next);
        }
    }
    if (errno != 0)
        give_up();
    closedir(list);
}

static void keep_all(const struct hand_job *job, int work)
{
    static struct keeping keep; /* holds a path: not for the stack of a recursion */
    keep.job = job;
    keep.complete = 1;
    keep_folder(&keep, work, 0, 1);
    struct hand_item item = {.kind = HAND_KEPT_DONE, .status = (uint8_t)keep.complete, .files = keep.files, .bytes = keep.bytes, .size = keep.skipped};
    write_all(job->out, &item, sizeof item);
}

_Noreturn void hand_main(const struct hand_job *job)
{
    /* Emptying /submission is done as its owner, root, but without a single capability. */
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0 || (job->id != 0 ? become(job->id) : drop_capabilities()) != 0)
        give_up();
    int work = job->mounts->fd[job->mounts->work];
    if (job->out >= 0) {
        if (fchmod(work, 0700) != 0) /* the program owns it, and may have closed it to itself */
            give_up();
        collect(job, work);
        if (job->keep)
            keep_all(job, work);
        close(job->out); /* the front sees the end, and need not wait for the scrub */
    }
    uint64_t deadline = now_ns() + SCRUB_BUDGET_NS, removed = 0;
    int failed = 0;
    if (job->id != 0 && fchmod(work, 0700) != 0)
        failed = 1;
    for (size_t i = 0; i < job->mounts->count; i++)
        if (scrub_folder(job->mounts->fd[i], deadline, &removed) != 0)
            failed = 1;
    atomic_store(&job->report->removed, removed);
    atomic_store(&job->report->finished, 1);
    _exit(failed);
}
