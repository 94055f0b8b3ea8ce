/*
 * replace.c - see replace.h. Invariant: whatever fails, no new file is left behind.
 */
#include "base/replace.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int write_all(int fd, const char *p, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, p, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        p += n;
        len -= (size_t)n;
    }
    return 0;
}

int replace_file(const char *path, const void *text, size_t len, mode_t mode, struct err *err)
{
    /* a name of this process alone: others may be replacing the same file */
    char *fresh = mem_printf("%s.%ld.new", path, (long)getpid());
    int fd = -1, rc = 0;

    if (unlink(fresh) != 0 && errno != ENOENT)
        goto fail;
    fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
    if (fd < 0 || write_all(fd, text, len) != 0)
        goto fail;
    rc = close(fd);
    fd = -1;
    if (rc == 0 && rename(fresh, path) == 0) {
        free(fresh);
        return 0;
    }
fail:
    rc = err_set(err, ERR_SYSTEM, "cannot write %s: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    unlink(fresh);
    free(fresh);
    return rc;
}
