/*
 * wake.c - being told that something has just become due (base/poke.h), instead of finding out at the next poll.
 *
 * Anybody on this host may wake, and do nothing more: what is sent is thrown away unread, between two looks the socket is not even
 * polled, and looks made for wakes take a quarter of the time at most. A directory that others may write is safe: no name in it is
 * followed, and only a dead socket of our own account is removed.
 */
#include "poller/state.h"

#include "base/log.h"
#include "base/poke.h"
#include "base/when.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* Looks for wakes are so far apart at least: less than a sender takes for its statement. */
#define PAUSE_US INT64_C(2000)
/* And they take one part in so many of the time. What was not used of the last second is good for later: a look that takes long for
 * once puts none off. */
#define SHARE 4
#define UNUSED_MAX_US INT64_C(1000000)
/* Taken from the queue at a time; the kernel lets some hundreds wait (net.unix.max_dgram_qlen). */
#define DRAIN_MAX 1024
/* A younger socket without an owner may be that of a dqd which is just about to listen. */
#define STALE_AGE_S 2
#define ENTRIES_MAX 4096

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83 /* from Linux 6.16 on */
#endif

/* Through the open directory: its own path may be longer than an address can be, and is looked up once only. */
static bool address(int dir_fd, const char *name, struct sockaddr_un *ret)
{
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    return (size_t)snprintf(ret->sun_path, sizeof ret->sun_path, "/proc/self/fd/%d/%s", dir_fd, name) < sizeof ret->sun_path;
}

static bool is_stale(int dir_fd, const char *name)
{
    struct sockaddr_un to;
    struct stat st;
    int fd;
    bool dead;

    if (strncmp(name, "wake.", 5) != 0 || fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISSOCK(st.st_mode) ||
        st.st_uid != geteuid() || time(NULL) - st.st_mtime < STALE_AGE_S || !address(dir_fd, name, &to))
        return false;
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    dead = fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to) != 0 && errno == ECONNREFUSED;
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

static int bind_for_all(int fd, int dir_fd, const char *name)
{
    struct sockaddr_un at;
    mode_t mask;
    int rc;

    if (!address(dir_fd, name, &at)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    mask = umask(0111); /* a chmod afterwards could meet another file */
    rc = bind(fd, (struct sockaddr *)&at, sizeof at);
    umask(mask);
    return rc;
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

static int make_socket(struct poller *p)
{
    struct wake *w = &p->wake;
    char prefix[POKE_PREFIX_SIZE];
    int off = 0;

    w->dir_fd = open_dir(p->conf->dqd.wake_dir);
    if (w->dir_fd < 0)
        return -1;
    remove_stale(w->dir_fd);
    snprintf(w->name, sizeof w->name, "%s%016" PRIx64, poke_prefix(prefix, p->conf->mysql.database), poller_random());
    w->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (w->fd < 0)
        return -1;
    /* A descriptor that comes along would be closed by us, and closing may block (SO_LINGER). */
    (void)setsockopt(w->fd, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof off);
    if (bind_for_all(w->fd, w->dir_fd, w->name) == 0)
        return 0;
    w->name[0] = '\0';
    return -1;
}

/* Where dq looks for it: our open directory may have been removed or moved away. */
static bool is_found(const struct poller *p)
{
    char path[PATH_MAX];
    struct stat st;

    return (size_t)snprintf(path, sizeof path, "%s/%s", p->conf->dqd.wake_dir, p->wake.name) >= sizeof path ||
           fstatat(AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

void wake_open(struct poller *p)
{
    const char *dir = p->conf->dqd.wake_dir;
    char text[WHEN_TEXT_SIZE];
    bool had = p->wake.fd >= 0, again = p->beat_us != 0;

    if (!dir[0] || p->o->mode == POLLER_ONCE || p->phase != PHASE_RUN || (had && is_found(p)))
        return;
    wake_close(p);
    if (make_socket(p) == 0) {
        if (again)
            log_event(LOG_NOTE, "the socket by which dq wakes this dqd was missing and has been made anew", "wake_dir=%s",
                      log_quote(dir));
        p->wake.rung = again; /* who added something meanwhile could not tell */
        return;
    }
    log_event(had || !again ? LOG_NOTE : LOG_DEBUG, "dq cannot wake this dqd: what is added late is seen at the next poll",
              "wake_dir=%s poll_interval=%s error=%s", log_quote(dir), when_format_duration(text, p->conf->dqd.poll_interval_ms),
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
    if (w->dir_fd >= 0)
        close(w->dir_fd);
    *w = (struct wake){.fd = -1, .dir_fd = -1};
}

int wake_fd(const struct poller *p)
{
    return p->wake.rung ? -1 : p->wake.fd;
}

int64_t wake_next(const struct poller *p)
{
    return p->wake.rung ? p->wake.next_us : NEVER_US;
}

int64_t wake_pace(int64_t *paid_us, int64_t now_us, int64_t cost_us)
{
    if (*paid_us < now_us - UNUSED_MAX_US)
        *paid_us = now_us - UNUSED_MAX_US;
    *paid_us += cost_us * SHARE;
    return *paid_us > now_us + PAUSE_US ? *paid_us : now_us + PAUSE_US;
}

void wake_run(struct poller *p)
{
    struct wake *w = &p->wake;
    int64_t now_us = when_steady_us();

    if (!w->rung || now_us < w->next_us)
        return;
    /* Emptied before the look: what is sent from now on may be about a task that the look does not see. */
    for (int i = 0; i < DRAIN_MAX && recv(w->fd, NULL, 0, 0) >= 0; i++)
        ;
    w->rung = false;
    w->next_us = wake_pace(&w->paid_us, now_us, claim_wake(p));
}
