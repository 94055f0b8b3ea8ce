/*
 * lock.c - see lock.h. Invariant: a file in a directory that others may write is never followed
 * through a link and never used unless it is ours.
 */
#include "poller/lock.h"

#include "base/mem.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Whether nobody else can create, rename or remove anything in it, root aside. */
static bool is_private(const char *dir)
{
    struct stat st;

    return lstat(dir, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
           !(st.st_mode & (S_IWGRP | S_IWOTH));
}

/* A directory in the account's home, made if it is missing. NULL: it has no home. */
static char *home_dir(void)
{
    const char *home = getenv("HOME");
    char *dir;

    if (!home || home[0] != '/')
        return NULL;
    dir = mem_printf("%s/.local/state/dq/", home);
    for (char *p = dir + strlen(home) + 1; (p = strchr(p, '/')); *p++ = '/') {
        *p = '\0';
        (void)mkdir(dir, 0700);
    }
    dir[strlen(dir) - 1] = '\0';
    if (is_private(dir))
        return dir;
    free(dir);
    return NULL;
}

/* The same for all processes of the account, however they were started: $XDG_RUNTIME_DIR, which
 * cron does not set, is none. */
/* NULL: failed. */
static char *choose_dir(struct err *err)
{
    const char *given = getenv("RUNTIME_DIRECTORY");
    char *dir;

    if (given && given[0] == '/')
        return mem_dup(given, strcspn(given, ":"));
    if (geteuid() == 0 || is_private("/run/dq"))
        return mem_strdup(geteuid() == 0 ? "/run" : "/run/dq");
    if ((dir = home_dir()))
        return dir;
    dir = mem_printf("/tmp/dqd-%u", (unsigned)geteuid());
    (void)mkdir(dir, 0700);
    if (is_private(dir))
        return dir;
    err_set(err, ERR_SYSTEM,
            "no directory for the lock file: %s is not this account's alone; set [dqd] lock_file",
            dir);
    free(dir);
    return NULL;
}

static char *choose_path(const struct conf *conf, struct err *err)
{
    char host[256] = ""; /* other hosts may share the home */
    const char *const parts[] = {conf->path, conf->mysql.database, host};
    uint64_t h = TEXT_HASH_INIT;

    if (conf->dqd.lock_file[0])
        return mem_strdup(conf->dqd.lock_file);
    MEM_LOCAL char *dir = choose_dir(err);
    if (!dir)
        return NULL;
    (void)gethostname(host, sizeof host - 1);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        h = text_hash(h, parts[i], strlen(parts[i]) + 1);
    return mem_printf("%s/dqd-%u-%016" PRIx64 ".lock", dir, (unsigned)geteuid(), h);
}

static int busy(int fd, const char *path, struct err *err)
{
    char pid[32];
    ssize_t n = pread(fd, pid, sizeof pid - 1, 0);

    pid[n > 0 ? n : 0] = '\0';
    pid[strcspn(pid, "\n")] = '\0';
    return err_set(
        err, ERR_BUSY,
        "another dqd%s%s is already running (lock file %s); use --allow-overlap to run both",
        pid[0] ? " with pid " : "", pid, path);
}

int lock_take(const struct conf *conf, int *ret_fd, struct err *err)
{
    MEM_LOCAL char *path = choose_path(conf, err);
    char pid[32];
    struct stat st;
    int rc = 0, fd;

    if (!path)
        return err->code;
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (fd < 0)
        return err_set(err, ERR_SYSTEM, "cannot open the lock file %s: %s; set [dqd] lock_file",
                       path, strerror(errno));
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid())
        rc = err_set(
            err, ERR_SYSTEM,
            "the lock file %s is not a file of this account; remove it or set [dqd] lock_file",
            path);
    else if (flock(fd, LOCK_EX | LOCK_NB) != 0)
        rc = errno == EWOULDBLOCK
                 ? busy(fd, path, err)
                 : err_set(err, ERR_SYSTEM, "cannot lock %s: %s", path, strerror(errno));
    if (rc < 0) {
        close(fd);
        return rc;
    }
    /* only for the message of another one: the disk may be full */
    snprintf(pid, sizeof pid, "%ld\n", (long)getpid());
    if (ftruncate(fd, 0) == 0)
        (void)!pwrite(fd, pid, strlen(pid), 0);
    *ret_fd = fd;
    return 0;
}

/* Whether a file can be created in the directory of path. */
static int check_directory(const char *path, struct err *err)
{
    const char *slash = strrchr(path, '/');
    MEM_LOCAL char *dir =
        slash > path ? mem_printf("%.*s", (int)(slash - path), path) : mem_strdup("/");
    struct stat st;
    int rc = 0;

    if (stat(dir, &st) == 0 && !S_ISDIR(st.st_mode))
        errno = ENOTDIR;
    else
        errno = faccessat(AT_FDCWD, dir, W_OK | X_OK, AT_EACCESS) == 0 ? 0 : errno;
    if (errno)
        rc = err_set(err, errno == ENOENT || errno == ENOTDIR ? ERR_CONFIG : ERR_DENIED,
                     "cannot create a lock file in %s: %s", dir, strerror(errno));
    return rc;
}

int lock_check(const struct conf *conf, struct err *err)
{
    MEM_LOCAL char *path = choose_path(conf, err);
    struct stat st;
    int rc = 0;

    if (!path)
        return err->code;
    if (lstat(path, &st) != 0)
        rc = check_directory(path, err);
    else if (!S_ISREG(st.st_mode))
        rc = err_set(err, ERR_CONFIG, "the lock file %s is not a regular file", path);
    else if (st.st_uid != geteuid())
        rc = err_set(err, ERR_DENIED, "the lock file %s belongs to user id %u", path,
                     (unsigned)st.st_uid);
    return rc;
}
