/* Removing everything below a folder, whatever a program did to it: folders of mode 0, any names, any depth. */
#define _GNU_SOURCE
#include "inside.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct scrubbing {
    int root;
    uint64_t deadline_ns, next_name;
    uint64_t *removed;
};

static int is_dot(const char *name) { return strcmp(name, ".") == 0 || strcmp(name, "..") == 0; }

/* Move a folder out of its parent and up to the root, under a name of ours that is free there. Depth costs no descriptors
 * and no stack that way: a tree of any depth is always handled as two levels. */
static int lift(struct scrubbing *job, int parent, const char *name)
{
    char fresh[48];
    for (int tries = 0; tries < 1000; tries++) {
        snprintf(fresh, sizeof fresh, ".scrub-%llu", (unsigned long long)job->next_name++);
        if (syscall(SYS_renameat2, parent, name, job->root, fresh, 1u /* RENAME_NOREPLACE */) == 0)
            return 0;
        if (errno != EEXIST)
            return -1;
    }
    return -1;
}

/* Remove one entry of the root. A folder is emptied into the root (its folders are lifted) and removed. */
static int remove_entry(struct scrubbing *job, const char *name)
{
    if (unlinkat(job->root, name, 0) == 0 || errno == ENOENT) {
        ++*job->removed;
        return 0;
    }
    if (errno != EISDIR && errno != EPERM)
        return -1;
    if (unlinkat(job->root, name, AT_REMOVEDIR) == 0) {
        ++*job->removed;
        return 0;
    }
    /* Its owner may have taken every right away; as its owner we give them back. Nothing else is alive that could put a
     * symlink there in between. */
    if (fchmodat(job->root, name, 0700, 0) != 0)
        return -1;
    int folder = openat(job->root, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0)
        return -1;
    char buffer[16384];
    int result = 0;
    while (result == 0) {
        if (now_ns() > job->deadline_ns || lseek(folder, 0, SEEK_SET) < 0) {
            result = -1;
            break;
        }
        long count = syscall(SYS_getdents64, folder, buffer, sizeof buffer);
        if (count < 0)
            result = -1;
        if (count <= 0)
            break;
        int found = 0;
        for (long at = 0; at < count && result == 0;) {
            const struct dirent64 *entry = (const struct dirent64 *)(const void *)(buffer + at);
            at += entry->d_reclen;
            if (is_dot(entry->d_name))
                continue;
            found = 1;
            if (entry->d_type != DT_DIR && unlinkat(folder, entry->d_name, 0) == 0) {
                ++*job->removed;
                continue;
            }
            if (unlinkat(folder, entry->d_name, AT_REMOVEDIR) == 0) {
                ++*job->removed;
                continue;
            }
            /* Writing to a folder is needed to move it: its `..` changes. */
            if (fchmodat(folder, entry->d_name, 0700, 0) != 0 || lift(job, folder, entry->d_name) != 0)
                result = -1;
        }
        if (!found)
            break;
    }
    close(folder);
    if (result == 0 && unlinkat(job->root, name, AT_REMOVEDIR) != 0)
        result = -1;
    ++*job->removed;
    return result;
}

int scrub_folder(int root, uint64_t deadline_ns, uint64_t *removed)
{
    struct scrubbing job = {.root = root, .deadline_ns = deadline_ns, .removed = removed};
    char buffer[16384];
    for (;;) {
        if (now_ns() > deadline_ns || lseek(root, 0, SEEK_SET) < 0)
            return -1;
        long count = syscall(SYS_getdents64, root, buffer, sizeof buffer);
        if (count < 0)
            return -1;
        int found = 0;
        for (long at = 0; at < count;) {
            const struct dirent64 *entry = (const struct dirent64 *)(const void *)(buffer + at);
            at += entry->d_reclen;
            if (is_dot(entry->d_name))
                continue;
            found = 1;
            if (remove_entry(&job, entry->d_name) != 0)
                return -1;
        }
        if (!found)
            return 0; /* read from its start, and nothing was there */
    }
}
