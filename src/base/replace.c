/*
 * replace.c - see replace.h. Invariant: whatever fails, no new file stays behind; one that a crash
 * has left is deleted by a later call.
 */
#include "base/replace.h"

#include "base/mem.h"
#include "base/when.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ENDING ".new"
/* No call takes this long, so the process that wrote the file has died. Its pid would prove less:
 * it may be of another host or container. */
#define STALE_MS (10 * WHEN_MINUTE)

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

/* "metrics.prom.1234.new", of metrics.prom */
static bool is_fresh_name(const char *name, const char *base)
{
    size_t len = strlen(base);

    if (strncmp(name, base, len) != 0 || name[len] != '.')
        return false;
    size_t digits = strspn(name + len + 1, "0123456789");
    return digits && strcmp(name + len + 1 + digits, ENDING) == 0;
}

static bool is_stale(const struct stat *st)
{
    return S_ISREG(st->st_mode) && when_host_wall() - st->st_mtime * WHEN_SECOND > STALE_MS;
}

/* Deletes what earlier calls for the same path have left. */
static void sweep(const char *path)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    char *dir = slash ? mem_dup(path, (size_t)(slash + 1 - path)) : mem_strdup(".");
    DIR *d = opendir(dir);
    const struct dirent *e;
    struct stat st;

    while (d && (e = readdir(d)))
        if (is_fresh_name(e->d_name, base) &&
            fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && is_stale(&st))
            unlinkat(dirfd(d), e->d_name, 0);
    if (d)
        closedir(d);
    free(dir);
}

int replace_file(const char *path, const void *text, size_t len, mode_t mode, struct err *err)
{
    /* a name of this process alone: others may be replacing the same file */
    char *fresh = mem_printf("%s.%ld" ENDING, path, (long)getpid());
    int fd = -1, rc = 0;

    sweep(path);
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
