/*
 * wake_listen.c - see wake_listen.h.
 *
 * dq opens a file of ours, and inotify(7) reports that, and whether dq reads it. Any account of
 * this host may wake us, and can do nothing more: an open carries nothing that would have to be
 * received and closed. A message to a socket can carry descriptors whose closing hangs, and a pipe
 * pages of a file whose server hangs.
 *
 * The directory may be one that others can write: no link in it is followed, and we remove only
 * files of our own account whose process has died.
 */
#include "wake/wake_listen.h"

#include "base/mem.h"
#include "wake/wake_send.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Reads for one take. The kernel merges equal reports, so the first read mostly gets all. */
#define READS_MAX 16
/* A younger file without a lock may belong to a process that is about to lock it. */
#define STALE_AGE_S 2

struct wake_listener {
    char *dir;
    int dir_fd, file_fd, inotify_fd; /* -1: not open */
    char name[48];                   /* of the file; "": not created */
};

/* The process of a file holds a lock on it as long as it lives. Another program that locks it only
 * keeps us from removing it. */
static bool is_stale(int dir_fd, const char *name)
{
    struct stat st;
    int fd;
    bool dead;

    if (strncmp(name, "wake.", 5) != 0 || fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(st.st_mode) || st.st_size > 1 || st.st_uid != geteuid() ||
        time(NULL) - st.st_mtime < STALE_AGE_S)
        return false;
    fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    dead = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
    if (fd >= 0)
        close(fd);
    return dead;
}

static void remove_stale(int dir_fd)
{
    int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *e;

    if (!entries) {
        if (fd >= 0)
            close(fd);
        return;
    }
    for (int i = 0; i < WAKE_ENTRIES_MAX && (e = readdir(entries)); i++)
        if (is_stale(dir_fd, e->d_name))
            (void)unlinkat(dir_fd, e->d_name, 0);
    closedir(entries);
}

static int open_dir(struct wake_listener *l, struct err *err)
{
    int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

    l->dir_fd = open(l->dir, flags);
    if (l->dir_fd < 0 && errno == ENOENT) {
        mode_t mask = umask(022);

        (void)mkdir(l->dir, 0755);
        umask(mask);
        l->dir_fd = open(l->dir, flags);
    }
    return l->dir_fd < 0 ? err_set(err, ERR_SYSTEM, "%s", strerror(errno)) : 0;
}

/* Other accounts can open the file only once it is locked: then its mode lets all read it, and none
 * write it. */
static int make_file(struct wake_listener *l, const char *database, struct err *err)
{
    char prefix[WAKE_FILE_PREFIX_SIZE];
    uint64_t random = 0;

    while (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
        ;
    snprintf(l->name, sizeof l->name, "%s%016" PRIx64, wake_file_prefix(prefix, database), random);
    l->file_fd =
        openat(l->dir_fd, l->name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0400);
    /* a read reports nothing if there is nothing to read */
    if (l->file_fd >= 0 && flock(l->file_fd, LOCK_EX | LOCK_NB) == 0 &&
        write(l->file_fd, "", 1) == 1 &&
        fchmod(l->file_fd, 0444) == 0)
        return 0;
    err_set(err, ERR_SYSTEM, "%s", strerror(errno));
    if (l->file_fd < 0)
        l->name[0] = '\0'; /* not ours to remove */
    return ERR_SYSTEM;
}

static int watch_opens(struct wake_listener *l, struct err *err)
{
    char path[32];

    /* by descriptor: another file may have the name by now */
    snprintf(path, sizeof path, "/proc/self/fd/%d", l->file_fd);
    l->inotify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (l->inotify_fd < 0 || inotify_add_watch(l->inotify_fd, path, IN_OPEN | IN_ACCESS) < 0)
        return err_set(err, ERR_SYSTEM, "inotify: %s", strerror(errno));
    return 0;
}

int wake_listen_open(const char *dir, const char *database, struct wake_listener **ret_listener,
                     struct err *err)
{
    struct wake_listener *l = mem_zero(1, sizeof *l);
    int rc;

    l->dir = mem_strdup(dir);
    l->dir_fd = l->file_fd = l->inotify_fd = -1;
    rc = open_dir(l, err);
    if (rc == 0) {
        remove_stale(l->dir_fd);
        rc = make_file(l, database, err);
    }
    if (rc == 0)
        rc = watch_opens(l, err);
    if (rc < 0) {
        wake_listen_close(l);
        return rc;
    }
    *ret_listener = l;
    return 0;
}

void wake_listen_close(struct wake_listener *l)
{
    if (!l)
        return;
    if (l->name[0])
        (void)unlinkat(l->dir_fd, l->name, 0);
    if (l->inotify_fd >= 0)
        close(l->inotify_fd);
    if (l->file_fd >= 0)
        close(l->file_fd);
    if (l->dir_fd >= 0)
        close(l->dir_fd);
    free(l->dir);
    free(l);
}

int wake_listen_fd(const struct wake_listener *l)
{
    return l->inotify_fd;
}

bool wake_listen_take(struct wake_listener *l)
{
    _Alignas(struct inotify_event) char reports[4096];
    bool rules = false;
    ssize_t n;

    for (int i = 0; i < READS_MAX && (n = read(l->inotify_fd, reports, sizeof reports)) > 0; i++) {
        for (ssize_t at = 0; at < n;) {
            const struct inotify_event *e = (const struct inotify_event *)(reports + at);

            rules |= e->mask & (IN_ACCESS | IN_Q_OVERFLOW);
            at += (ssize_t)(sizeof *e + e->len);
        }
    }
    return rules;
}

bool wake_listen_reachable(const struct wake_listener *l)
{
    char path[PATH_MAX];
    struct stat st;

    /* by path, as dq does: the directory that we have open may have been removed or moved */
    return (size_t)snprintf(path, sizeof path, "%s/%s", l->dir, l->name) >= sizeof path ||
           fstatat(AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW) == 0 ||
           (errno != ENOENT && errno != ENOTDIR);
}

int wake_listen_check(const char *dir, struct err *err)
{
    struct stat st;

    if (lstat(dir, &st) < 0)
        return errno == ENOENT ? 0 : err_set(err, ERR_SYSTEM, "%s", strerror(errno));
    if (!S_ISDIR(st.st_mode))
        return err_set(err, ERR_SYSTEM, "%s", strerror(ENOTDIR));
    return eaccess(dir, W_OK | X_OK) < 0 ? err_set(err, ERR_SYSTEM, "%s", strerror(errno)) : 0;
}
