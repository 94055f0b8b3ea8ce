/*
 * poke.c - see poke.h. Invariant: costs a few system calls, whatever the directory is or holds: it may be one that anybody can
 * write.
 */
#include "base/poke.h"

#include "base/text.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define ENTRIES_MAX 256

const char *poke_prefix(char buf[POKE_PREFIX_SIZE], const char *database)
{
    snprintf(buf, POKE_PREFIX_SIZE, "wake.%016" PRIx64 ".", text_hash(TEXT_HASH_INIT, database));
    return buf;
}

void poke_send(const char *dir, const char *database)
{
    DIR *entries = *dir ? opendir(dir) : NULL;
    const struct dirent *e;
    char prefix[POKE_PREFIX_SIZE];
    int fd = -1;

    if (!entries)
        return;
    poke_prefix(prefix, database);
    for (int i = 0; i < ENTRIES_MAX && (e = readdir(entries)); i++) {
        struct sockaddr_un to = {.sun_family = AF_UNIX};
        int n;

        if (strncmp(e->d_name, prefix, strlen(prefix)) != 0 || (e->d_type != DT_SOCK && e->d_type != DT_UNKNOWN))
            continue;
        if (fd < 0)
            fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        /* Through the open directory: its own path may be longer than an address can be. */
        n = snprintf(to.sun_path, sizeof to.sun_path, "/proc/self/fd/%d/%s", dirfd(entries), e->d_name);
        if (fd >= 0 && n > 0 && (size_t)n < sizeof to.sun_path)
            (void)sendto(fd, "", 0, MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&to, sizeof to);
    }
    if (fd >= 0)
        close(fd);
    closedir(entries);
}
