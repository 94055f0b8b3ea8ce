/*
 * poke.c - see poke.h. Invariant: costs a few system calls, whatever the directory is or holds: it
 * may be one that anybody can write.
 */
#include "base/poke.h"

#include "base/text.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ENTRIES_MAX 256

const char *poke_prefix(char buf[POKE_PREFIX_SIZE], const char *database)
{
    snprintf(buf, POKE_PREFIX_SIZE, "wake.%016" PRIx64 ".",
             text_hash(TEXT_HASH_INIT, database, strlen(database)));
    return buf;
}

void poke_send(const char *dir, const char *database)
{
    DIR *entries = *dir ? opendir(dir) : NULL;
    const struct dirent *e;
    char prefix[POKE_PREFIX_SIZE];

    if (!entries)
        return;
    poke_prefix(prefix, database);
    for (int i = 0; i < ENTRIES_MAX && (e = readdir(entries)); i++) {
        int fd;

        if (strncmp(e->d_name, prefix, strlen(prefix)) != 0 ||
            (e->d_type != DT_REG && e->d_type != DT_UNKNOWN))
            continue;
        fd = openat(dirfd(entries), e->d_name,
                    O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC);
        if (fd >= 0)
            close(fd);
    }
    closedir(entries);
}
