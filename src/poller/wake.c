/*
 * wake.c - being told that something has just become due (base/poke.h), instead of finding out at
 * the next poll.
 *
 * dq opens an empty file of ours, and inotify(7) reports that. Anybody on this host may wake, and
 * do nothing more: an open carries nothing that would have to be taken and closed, as a message to
 * a socket can carry descriptors whose closing hangs, and a pipe pages of a file whose server
 * hangs. Between two looks the report is not even polled, and look.c says how often they are made.
 * A directory that others may write is safe: no name in it is followed, and only a file of our own
 * account whose dqd is gone is removed.
 */
#include "poller/wake.h"

#include "base/log.h"
#include "base/poke.h"
#include "base/when.h"
#include "poller/state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Reads at a time. Reports that are alike are one, so that mostly the first takes all. */
#define DRAIN_MAX 16
/* A younger file without a lock may be that of a dqd which is just about to take it. */
#define STALE_AGE_S 2
#define ENTRIES_MAX 4096

/* Its dqd holds a lock on it for as long as it lives. Somebody else who locks it only keeps it from
 * being removed. */
static bool is_stale(int dir_fd, const char *name)
{
    struct stat st;
    int fd;
    bool dead;

    if (strncmp(name, "wake.", 5) != 0 || fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(st.st_mode) || st.st_size != 0 || st.st_uid != geteuid() ||
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
    for (int i = 0; i < ENTRIES_MAX && (e = readdir(entries)); i++)
        if (is_stale(dir_fd, e->d_name))
            (void)unlinkat(dir_fd, e->d_name, 0);
    closedir(entries);
}

static int open_dir(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0 && errno == ENOENT) {
        mode_t mask = umask(022);

        (void)mkdir(path, 0755);
        umask(mask);
        fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    }
    return fd;
}

/* Nobody else can open it before it is locked: then its mode lets all open it, and none write to
 * it. */
static int make_file(int dir_fd, const char *name)
{
    int fd = openat(dir_fd, name, O_RDONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0400);

    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && fchmod(fd, 0444) == 0)
        return fd;
    if (fd >= 0) {
        (void)unlinkat(dir_fd, name, 0);
        close(fd);
    }
    return -1;
}

static int watch_opens(int file_fd)
{
    char path[32];
    int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

    /* what it is called may be something else by now */
    snprintf(path, sizeof path, "/proc/self/fd/%d", file_fd);
    if (fd < 0 || inotify_add_watch(fd, path, IN_OPEN) >= 0)
        return fd;
    close(fd);
    return -1;
}

static int make_wake(struct poller *p)
{
    struct wake *w = &p->wake;
    char prefix[POKE_PREFIX_SIZE];

    w->dir_fd = open_dir(p->conf->dqd.wake_dir);
    if (w->dir_fd < 0)
        return -1;
    remove_stale(w->dir_fd);
    snprintf(w->name, sizeof w->name, "%s%016" PRIx64, poke_prefix(prefix, p->conf->mysql.database),
             poller_random());
    w->file_fd = make_file(w->dir_fd, w->name);
    if (w->file_fd < 0) {
        w->name[0] = '\0';
        return -1;
    }
    w->fd = watch_opens(w->file_fd);
    return w->fd < 0 ? -1 : 0;
}

/* Where dq looks for it: our open directory may have been removed or moved away. */
static bool is_found(const struct poller *p)
{
    char path[PATH_MAX];
    struct stat st;

    return (size_t)snprintf(path, sizeof path, "%s/%s", p->conf->dqd.wake_dir, p->wake.name) >=
               sizeof path ||
           fstatat(AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

void wake_open(struct poller *p)
{
    const char *dir = p->conf->dqd.wake_dir;
    char text[WHEN_TEXT_SIZE];
    bool had = p->wake.fd >= 0, again = p->registry.beat_us != 0;

    if (!dir[0] || p->o->mode == POLLER_ONCE || p->phase != PHASE_RUN || (had && is_found(p)))
        return;
    wake_close(p);
    if (make_wake(p) == 0) {
        if (again)
            log_event(LOG_NOTE,
                      "the file by which dq wakes this dqd was missing and has been made again",
                      "wake_dir=%s", log_quote(dir));
        p->wake.rung = again; /* who added something meanwhile could not tell */
        return;
    }
    log_event(had || !again ? LOG_NOTE : LOG_DEBUG,
              "dq cannot wake this dqd: what is added late is seen at the next poll",
              "wake_dir=%s poll_interval=%s error=%s", log_quote(dir),
              when_format_duration(text, p->conf->dqd.poll_interval_ms),
              log_quote(strerror(errno)));
    wake_close(p);
}

void wake_close(struct poller *p)
{
    struct wake *w = &p->wake;

    if (w->name[0] && w->dir_fd >= 0)
        (void)unlinkat(w->dir_fd, w->name, 0);
    if (w->fd >= 0)
        close(w->fd);
    if (w->file_fd >= 0)
        close(w->file_fd);
    if (w->dir_fd >= 0)
        close(w->dir_fd);
    *w = (struct wake){.fd = -1, .file_fd = -1, .dir_fd = -1};
}

int wake_fd(const struct poller *p)
{
    return p->wake.rung ? -1 : p->wake.fd;
}

int64_t wake_next(const struct poller *p)
{
    return p->wake.rung ? p->wake.next_us : NEVER_US;
}

void wake_run(struct poller *p)
{
    struct wake *w = &p->wake;
    int64_t now_us = when_steady_us();
    char reports[4096];

    if (!w->rung || now_us < w->next_us)
        return;
    /* Emptied before the look: what is sent from now on may be about a task that the look does not
     * see. */
    for (int i = 0; i < DRAIN_MAX && read(w->fd, reports, sizeof reports) > 0; i++)
        ;
    w->rung = false;
    w->next_us = look_woken(&p->look, now_us);
}
