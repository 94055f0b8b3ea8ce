/*
 * wake_send.c - see wake_send.h. Invariant: sending takes milliseconds at most, whatever the
 * directory is or holds; any account may be able to write it.
 */
#include "wake/wake_send.h"

#include "base/text.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const char *wake_file_prefix(char buf[WAKE_FILE_PREFIX_SIZE], const char *database)
{
    snprintf(buf, WAKE_FILE_PREFIX_SIZE, "wake.%016" PRIx64 ".",
             text_hash(TEXT_HASH_INIT, database, strlen(database)));
    return buf;
}

void wake_send(const char *dir, const char *database, bool rules)
{
    DIR *entries = *dir ? opendir(dir) : NULL;
    const struct dirent *e;
    char prefix[WAKE_FILE_PREFIX_SIZE];

    if (!entries)
        return;
    wake_file_prefix(prefix, database);
    for (int i = 0; i < WAKE_ENTRIES_MAX && (e = readdir(entries)); i++) {
        char byte;
        int fd;

        if (strncmp(e->d_name, prefix, strlen(prefix)) != 0 ||
            (e->d_type != DT_REG && e->d_type != DT_UNKNOWN))
            continue;
        fd = openat(dirfd(entries), e->d_name,
                    O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC);
        if (fd >= 0 && rules)
            (void)!read(fd, &byte, 1);
        if (fd >= 0)
            close(fd);
    }
    closedir(entries);
}
