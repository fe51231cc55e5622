/* Who the processes of a box are: ids drawn at random, and the way down from root, which must never half succeed. */
#define _GNU_SOURCE
#include "inside.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PREFERRED_LOW (1u << 30)
#define PREFERRED_HIGH ((1u << 31) - 2u)

/* The part of a map's widest range that lies as high as possible: ids that nobody else in the box has. */
static int widest_range(const char *path, uint32_t *low, uint32_t *high)
{
    FILE *map = fopen(path, "re");
    if (map == NULL)
        return -1;
    unsigned long long inside, outside, count, best = 0;
    char line[128];
    while (fgets(line, sizeof line, map) != NULL) {
        if (sscanf(line, "%llu %llu %llu", &inside, &outside, &count) != 3 || count <= best || inside + count > UINT32_MAX)
            continue;
        best = count;
        *low = (uint32_t)inside;
        *high = (uint32_t)(inside + count - 1);
    }
    fclose(map);
    return best > 0 ? 0 : -1;
}

int ids_open(struct ids *ids)
{
    uint32_t ulow, uhigh, glow, ghigh;
    if (widest_range("/proc/self/uid_map", &ulow, &uhigh) != 0 || widest_range("/proc/self/gid_map", &glow, &ghigh) != 0)
        return -1;
    uint32_t low = ulow > glow ? ulow : glow, high = uhigh < ghigh ? uhigh : ghigh;
    if (low <= PREFERRED_LOW && high >= PREFERRED_HIGH) {
        ids->low = PREFERRED_LOW;
        ids->high = PREFERRED_HIGH;
        return 0;
    }
    /* Inside a small map (rootless: 65,536 ids): above the system's and the users' own, below nobody. */
    if (high > 60000 && low < 20000 && high < 70000) {
        low = 20000;
        high = 60000;
    } else if (low < 20000) {
        low = 20000;
    }
    if (high < low || high - low < 1000)
        return -1;
    ids->low = low;
    ids->high = high;
    return 0;
}

uint32_t ids_draw(const struct ids *ids, const uint32_t *taken, size_t count)
{
    for (;;) {
        uint32_t random;
        if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
            continue;
        uint32_t id = ids->low + random % (ids->high - ids->low + 1);
        size_t i = 0;
        while (i < count && taken[i] != id)
            i++;
        if (i == count)
            return id;
    }
}

int drop_capabilities(void)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct none[2];
    memset(none, 0, sizeof none);
    if (syscall(SYS_capset, &header, none) != 0)
        return -1;
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0 && errno != EINVAL)
        return -1;
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

int become(uint32_t id)
{
    if (setgroups(0, NULL) != 0 || setresgid(id, id, id) != 0 || setresuid(id, id, id) != 0 || drop_capabilities() != 0)
        return -1;
    /* Believe it only when it is seen: there is no way back to root. */
    uid_t r, e, s;
    if (getresuid(&r, &e, &s) != 0 || r != id || e != id || s != id || setuid(0) == 0) {
        errno = EPERM;
        return -1;
    }
    return 0;
}

/* Pseudo-terminals are numbered machine-wide and outlive nothing, but their count is shared: programs get none. */
int ptmx_close(void) { return chmod("/dev/pts/ptmx", 0600) == 0 || errno == ENOENT ? 0 : -1; }
