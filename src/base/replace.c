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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ENDING ".new"
#define MODE 0644    /* of a new file, as the umask allows */
#define GIVEN_MAX 10 /* shells redirect descriptors of one digit */
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
    MEM_LOCAL char *dir = slash ? mem_dup(path, (size_t)(slash + 1 - path)) : mem_strdup(".");
    DIR *d = opendir(dir);
    const struct dirent *e;
    struct stat st;

    while (d && (e = readdir(d)))
        if (is_fresh_name(e->d_name, base) &&
            fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && is_stale(&st))
            unlinkat(dirfd(d), e->d_name, 0);
    if (d)
        closedir(d);
}

/* Writes and closes it. old: the file that it replaces, whose rights it gets; it was made for its
 * owner alone. */
static int fill(int fd, const struct stat *old, const void *text, size_t len)
{
    bool ready = fd >= 0 && (!old || (fchown(fd, old->st_uid, old->st_gid) == 0 &&
                                      fchmod(fd, old->st_mode & 07777) == 0));
    int rc = ready ? write_all(fd, text, len) : -1, why = errno;

    if (fd >= 0 && close(fd) != 0 && rc == 0)
        return -1;
    errno = why;
    return rc;
}

/* old: the regular file that has the name; NULL: none has it. -1 and errno: all is as it was. */
static int rename_over(const char *path, const struct stat *old, const void *text, size_t len)
{
    /* a name of this process alone: others may be replacing the same file */
    MEM_LOCAL char *fresh = mem_printf("%s.%ld" ENDING, path, (long)getpid());
    int fd = -1, rc, why;

    sweep(path);
    if (unlink(fresh) == 0 || errno == ENOENT)
        fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, old ? 0600 : MODE);
    rc = fill(fd, old, text, len);
    if (rc == 0)
        rc = rename(fresh, path);
    why = errno;
    if (rc != 0 && fd >= 0)
        unlink(fresh);
    errno = why;
    return rc;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* The descriptor through which the shell has opened the file for us: /dev/stdout, /dev/fd/3.
 * Another one would begin at the front of what has been written there. -1: none. */
static int given_descriptor(const struct stat *st)
{
    struct stat given;

    for (int fd = STDOUT_FILENO; fd < GIVEN_MAX; fd++)
        if (fstat(fd, &given) == 0 && is_same(&given, st) &&
            (fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY)
            return fd;
    return -1;
}

static int write_into(const char *path, bool may_wait, const void *text, size_t len)
{
    int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY | (may_wait ? 0 : O_NONBLOCK);

    return fill(open(path, flags, MODE), NULL, text, len);
}

/* The name, behind all links, of a regular file that has no other one. NULL: it is none. The kernel
 * decides which links may be followed (fs.protected_symlinks): the name must be that of the file to
 * which it has led us. */
static char *only_name(const char *path, const struct stat *st)
{
    char *name = S_ISREG(st->st_mode) && st->st_nlink == 1 ? realpath(path, NULL) : NULL;
    struct stat named;

    if (name && lstat(name, &named) == 0 && is_same(&named, st))
        return name;
    free(name);
    return NULL;
}

static int put_existing(const char *path, const struct stat *st, bool may_wait, const void *text,
                        size_t len)
{
    int fd = may_wait ? given_descriptor(st) : -1, rc = -1;
    char *name;

    if (fd >= 0)
        return write_all(fd, text, len);
    name = only_name(path, st);
    errno = EPERM;
    if (name)
        rc = rename_over(name, st, text, len);
    free(name);
    /* also one that can be written, but not replaced: its owner or the directory is another
     * account's, or it is mounted into a container */
    if (rc != 0 && (errno == EPERM || errno == EACCES || errno == EBUSY || errno == EROFS))
        rc = write_into(path, may_wait, text, len);
    return rc;
}

int replace_file(const char *path, const void *text, size_t len, bool may_wait, struct err *err)
{
    struct stat st;
    int rc;

    if (stat(path, &st) == 0)
        rc = put_existing(path, &st, may_wait, text, len);
    else if (lstat(path, &st) == 0) /* a link to nothing, or one that must not be followed */
        rc = write_into(path, may_wait, text, len);
    else
        rc = rename_over(path, NULL, text, len);
    return rc == 0 ? 0 : err_set(err, ERR_SYSTEM, "cannot write %s: %s", path, strerror(errno));
}
