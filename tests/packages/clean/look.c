/* Prints `clean`, or what an earlier run has left in this box. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int found;

static void look_into(const char *path)
{
    DIR *list = opendir(path);
    struct dirent *entry;
    while (list != NULL && (entry = readdir(list)) != NULL)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            found = 1, printf("%s/%s\n", path, entry->d_name);
}

int main(void)
{
    look_into("/tmp");
    look_into("/work");
    look_into("/dev/shm");
    DIR *list = opendir("/proc");
    struct dirent *entry;
    while (list != NULL && (entry = readdir(list)) != NULL) {
        char path[300], command[64] = "";
        struct stat s;
        snprintf(path, sizeof path, "/proc/%s", entry->d_name);
        if (atoi(entry->d_name) == 0 || stat(path, &s) != 0 || s.st_uid == 0 || s.st_uid == getuid())
            continue;
        strcat(path, "/cmdline");
        FILE *file = fopen(path, "r");
        if (file == NULL || fgets(command, sizeof command, file) == NULL || strncmp(command, "/.grader/", 9) != 0)
            found = 1, printf("process %s of %u: %s\n", entry->d_name, s.st_uid, command);
    }
    if (!found)
        puts("clean");
    return 0;
}
