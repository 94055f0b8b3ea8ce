/*
 * session.c - finds and signals the processes of sessions.
 *
 * Invariants: a signal is sent only to a process that was found in the session while a descriptor
 * of it was held, so that a pid which was reused meanwhile is not hit. A process that has got KILL
 * cannot fork any more, so a look that finds none without it is the last one needed.
 */
#include "runner/session.h"

#include "base/mem.h"
#include "runner/child.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOOKS_MAX 50

/* 0, or errno. */
static int signal_member(pid_t pid, pid_t session, int sig)
{
#if defined SYS_pidfd_open && defined SYS_pidfd_send_signal
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    int rc = 0;

    if (fd >= 0) {
        if (getsid(pid) == session && syscall(SYS_pidfd_send_signal, fd, sig, NULL, 0) != 0)
            rc = errno;
        close(fd);
        return rc;
    }
    if (errno != ENOSYS && errno != EPERM) /* EPERM: a sandbox that does not know the call */
        return errno;
#endif
    return getsid(pid) == session && kill(pid, sig) != 0 ? errno : 0;
}

typedef void each_process(void *ctx, pid_t pid, pid_t session);

/* False: /proc could not be opened. */
static bool look(each_process *each, void *ctx)
{
    DIR *d = opendir("/proc");
    struct dirent *e;

    if (!d)
        return false;
    while ((e = readdir(d))) {
        pid_t pid = isdigit((unsigned char)e->d_name[0]) ? (pid_t)atol(e->d_name) : 0, session;
        if (pid > 1 && (session = getsid(pid)) > 1)
            each(ctx, pid, session);
    }
    closedir(d);
    return true;
}

struct scales {
    session_meant *meant;
    session_weight *weigh;
    void *ctx;
};

static void weigh_one(void *ctx, pid_t pid, pid_t session)
{
    const struct scales *s = ctx;
    char path[32];
    long pages;
    FILE *f = NULL;

    snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
    if (s->meant(s->ctx, session) && (f = fopen(path, "re")) && fscanf(f, "%*s %ld", &pages) == 1)
        s->weigh(s->ctx, session, pages * sysconf(_SC_PAGESIZE));
    if (f)
        fclose(f);
}

void session_weigh(session_meant *meant, session_weight *weigh, void *ctx)
{
    struct scales s = {meant, weigh, ctx};

    (void)look(weigh_one, &s);
}

struct weight {
    pid_t session;
    int64_t bytes;
};

static bool is_this(void *ctx, pid_t session)
{
    return session == ((const struct weight *)ctx)->session;
}

static void add(void *ctx, pid_t session, int64_t bytes)
{
    (void)session;
    ((struct weight *)ctx)->bytes += bytes;
}

int64_t session_memory(pid_t session)
{
    struct weight w = {.session = session};

    session_weigh(is_this, add, &w);
    return w.bytes;
}

struct term {
    session_meant *meant;
    void *ctx;
};

static void term_one(void *ctx, pid_t pid, pid_t session)
{
    const struct term *t = ctx;

    if (!t->meant(t->ctx, session) || getpgid(pid) == session)
        return;
    signal_member(pid, session, SIGTERM);
    signal_member(pid, session, SIGCONT);
}

void session_term(session_meant *meant, void *ctx)
{
    struct term t = {meant, ctx};

    (void)look(term_one, &t); /* KILL follows */
}

struct doom {
    session_meant *meant;
    void *ctx;
    pid_t *killed; /* so far */
    size_t count;
    bool more; /* the current look found one that is not among them */
    pid_t denied;
};

static bool is_dead(pid_t pid)
{
    char text[CHILD_STAT_SIZE];
    const char *stat = child_stat(pid, text);

    return stat ? !*stat || strchr("ZX", stat[1]) : errno == ENOENT;
}

static void kill_one(void *ctx, pid_t pid, pid_t session)
{
    struct doom *d = ctx;

    if (pid == session || !d->meant(d->ctx, session))
        return;
    for (size_t i = 0; i < d->count; i++)
        if (d->killed[i] == pid)
            return;
    int fault = signal_member(pid, session, SIGKILL);
    if (fault == EPERM) {
        if (!is_dead(pid))
            d->denied = pid;
        return;
    }
    if (fault == 0) {
        d->killed = mem_resize(d->killed, d->count + 1, sizeof *d->killed);
        d->killed[d->count++] = pid;
    }
    d->more = true;
}

enum session_left session_kill(session_meant *meant, void *ctx, pid_t *ret_denied)
{
    struct doom d = {.meant = meant, .ctx = ctx, .more = true};

    for (int looks = 0; d.more && looks < LOOKS_MAX; looks++) {
        d.more = false;
        d.denied = 0;
        if (!look(kill_one, &d)) {
            d.more = true;
            break;
        }
    }
    free(d.killed);
    if (ret_denied)
        *ret_denied = d.denied;
    return d.more                         ? SESSION_GROWS
           : d.denied                     ? SESSION_DENIED
           : access("/proc/1", F_OK) != 0 ? SESSION_HIDDEN
                                          : SESSION_EMPTY;
}
