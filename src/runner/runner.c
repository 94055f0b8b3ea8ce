/*
 * runner.c - the runner process: a loop over the link, the pipes of its children and their ends.
 * Its tick does what is due and returns how long to wait.
 *
 * Invariants: nothing here blocks except epoll_wait; after each wait, jobs that are past their
 * deadline are killed before anything else is done; whatever the poller sends, only commands of the
 * runner's own handlers table are executed.
 */
#include "runner/runner.h"

#include "base/json.h"
#include "base/log.h"
#include "base/log_fold.h"
#include "base/when.h"
#include "runner/crew.h"
#include "runner/launch.h"
#include "runner/message.h"
#include "runner/plan.h"
#include "runner/process.h"
#include "runner/proto.h"
#include "runner/queue.h"
#include "runner/reload.h"
#include "runner/reply.h"
#include "runner/stream.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/param.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define EVENTS 64             /* handled per turn */
#define READ_TURN (64 * 1024) /* bytes read from one stream per turn */
#define FDS_AT_START 4096     /* 32 KiB; more than wait for 100 ms of fast handlers */
#define WAIT_FOR_EVENTS (-1)
#define WAIT_LEFT (-2)
/* Limits the wait while handlers run: a suspended host stops the clock of epoll_wait. */
#define WAIT_MAX_MS 1000

struct runner {
    const char *default_user, *config;
    struct reload *reload;
    uint64_t kept_digest; /* of the table that the poller used when it last asked for a reload */
    int sock, signals;
    /* expires when an early job may start: epoll_wait has a resolution of milliseconds */
    int timer;
    int64_t timer_us; /* when; JOB_NEVER: it is not set */
    bool orphaned;    /* the poller is gone: kill all, then end */
    bool sock_full;   /* reports wait until it takes more */
    struct crew crew;
    struct table *tables; /* the first is in use */
    struct proto_in in;
    struct proto_out out;
};

/* ---- the tick */

static void flush(struct runner *r)
{
    int rc = proto_flush(&r->out, r->sock);
    bool full = rc > 0;

    if (rc < 0)
        proto_out_done(&r->out); /* the other end is closed: the end of file will be read, too */
    if (full != r->sock_full) {
        struct epoll_event ev = {.events = full ? EPOLLIN | EPOLLOUT : EPOLLIN,
                                 .data.ptr = &r->sock};
        epoll_ctl(r->crew.c.epoll, EPOLL_CTL_MOD, r->sock, &ev);
        r->sock_full = full;
    }
}

static void set_timer(struct runner *r, int64_t at_us)
{
    struct itimerspec when = {
        .it_value = {.tv_sec = at_us / 1000000, .tv_nsec = at_us % 1000000 * 1000}};

    if (at_us == JOB_NEVER || at_us == r->timer_us)
        return;
    timerfd_settime(r->timer, TFD_TIMER_ABSTIME, &when, NULL);
    r->timer_us = at_us;
}

static void drain_signals(struct runner *r)
{
    struct signalfd_siginfo si;

    while (read(r->signals, &si, sizeof si) > 0)
        ;
}

static void timer_expired(struct runner *r)
{
    uint64_t times;

    if (read(r->timer, &times, sizeof times) > 0)
        r->timer_us = JOB_NEVER;
}

/* Returns the milliseconds to wait; WAIT_FOR_EVENTS: until there is an event; WAIT_LEFT: this
 * thread does not own the loop any more. */
static int tick(struct runner *r)
{
    int64_t early_us = queue_ripen(&r->crew.queue, when_steady_us());
    enum crew_starts starts = r->orphaned ? CREW_DONE : crew_start(&r->crew);

    if (starts == CREW_LEFT)
        return WAIT_LEFT;
    set_timer(r, early_us);
    crew_sweep(&r->crew);
    crew_tell(&r->crew, r->tables);
    log_catch_up();
    if (r->orphaned)
        proto_out_done(&r->out);
    else
        flush(r);
    if (starts == CREW_MORE)
        return 0;
    if (r->crew.watch_at == JOB_NEVER)
        return WAIT_FOR_EVENTS;
    int64_t wait = r->crew.watch_at - when_steady();
    return wait < 0 ? 0 : wait < WAIT_MAX_MS ? (int)wait : WAIT_MAX_MS;
}

/* ---- messages */

static struct table *find_table(struct runner *r, uint64_t digest)
{
    struct table *t = r->tables;

    while (t && t->handlers->digest != digest)
        t = t->next;
    return t;
}

static void take_job(struct runner *r, uint32_t number, const struct message_job *m)
{
    struct job *j = job_new(number, m, when_steady());
    struct table *t = find_table(r, m->digest);

    if (jobs_find(&r->crew.jobs, number) ||
        (t && (m->handler >= t->handlers->count ||
               m->count > (uint32_t)t->handlers->items[m->handler].batch))) {
        r->in.bad = true;
        job_free(j);
    } else if (!t) {
        reply_returned(&r->out, j, 0, "the handlers file has changed");
        job_free(j);
    } else {
        crew_add(&r->crew, j, t);
    }
}

static void take_deadline(struct runner *r, const struct message_deadline *m)
{
    const char *numbers = m->numbers;
    int64_t now = when_steady();

    for (uint32_t i = 0, number; i < m->count; i++) {
        memcpy(&number, numbers + i * sizeof number, sizeof number);
        struct job *j = jobs_find(&r->crew.jobs, number);
        if (j)
            job_set_deadline(j, m->deadline_at, now);
    }
}

static void take_kill(struct runner *r, uint32_t number, enum message_kill_reason reason)
{
    static const enum process_stop why[] = {
        [MESSAGE_KILL_CANCELLED] = PROCESS_CANCELLED,
        [MESSAGE_KILL_LOST] = PROCESS_LOST,
        [MESSAGE_KILL_SHUTDOWN] = PROCESS_SHUT_DOWN,
        [MESSAGE_KILL_UNSTARTED] = PROCESS_RUNS,
    };
    struct job *j = jobs_find(&r->crew.jobs, number);

    if (j && !j->process)
        crew_give_back(&r->crew, j, 0, NULL);
    else if (j && why[reason] != PROCESS_RUNS)
        crew_stop(&r->crew, j->process, why[reason]);
}

static void take_follow(struct runner *r, uint32_t number, enum message_follow_what what)
{
    struct job *j = jobs_find(&r->crew.jobs, number);

    if (!j)
        return;
    if (j->followed && what == MESSAGE_FOLLOW_BEGIN)
        reply_fresh(&r->out, j); /* the tail may not have all of it */
    if (what != MESSAGE_FOLLOW_MORE) {
        job_follow(j, what != MESSAGE_FOLLOW_END);
        j->whole = what == MESSAGE_FOLLOW_WHOLE;
    }
    if (j->followed)
        reply_fresh(&r->out, j);
    for (int i = 0; j->process && i < PROCESS_STREAMS; i++)
        stream_resume(&j->process->streams[i], &r->crew.c);
}

static void take_vouch(struct runner *r, int64_t until_us)
{
    if (until_us > r->crew.queue.vouched_us)
        r->crew.queue.vouched_us = until_us;
}

static void return_waiting(struct runner *r)
{
    struct job *j;

    while ((j = queue_any(&r->crew.queue)))
        crew_give_back(&r->crew, j, 0, NULL);
}

/* Frees tables that no job uses, except the current one, the one before and the poller's: jobs that
 * name these may be on their way. */
static void drop_tables(struct runner *r)
{
    struct table **at = &r->tables->next;

    if (*at)
        at = &(*at)->next;
    while (*at) {
        struct table *t = *at;
        if (t->users || t->handlers->digest == r->kept_digest) {
            at = &t->next;
        } else {
            *at = t->next;
            table_free(t);
        }
    }
}

/* The poller makes its table from the same text as we do, so that the two cannot differ even if the
 * file changes meanwhile. */
static void reloaded(struct runner *r)
{
    struct handlers *h;
    struct err e = {0};
    int text;

    if (!reload_take(r->reload, &h, &text, &e))
        return;
    if (h && h->digest != r->tables->handlers->digest) {
        struct table *t = table_new(h, r->default_user, r->config);
        t->owned = h;
        t->next = r->tables;
        r->tables->old = true;
        r->tables = t;
        crew_renew(&r->crew);
        drop_tables(r);
    } else {
        handlers_free(h);
    }
    reply_reloaded(&r->out, r->tables->handlers->digest, text, text >= 0 ? NULL : e.text);
}

/* The poller is gone, or has sent a malformed order. The link stays open: link_stop takes its end
 * of file as the sign that every handler is gone. */
static void orphan(struct runner *r)
{
    epoll_ctl(r->crew.c.epoll, EPOLL_CTL_DEL, r->sock, NULL);
    r->orphaned = true;
    return_waiting(r);
    for (size_t i = r->crew.jobs.running_count; i-- > 0;)
        crew_stop(&r->crew, r->crew.jobs.running[i], PROCESS_SHUT_DOWN);
    crew_sweep(&r->crew);
    if (r->crew.jobs.taken)
        log_event(LOG_WARN, "the poller is gone, killing its handlers", "running=%zu",
                  r->crew.jobs.taken);
}

/* Tags that share processes share those elsewhere, too. */
static void take_elsewhere(struct runner *r, const struct message_elsewhere *m)
{
    const int i = handlers_match(r->tables->handlers, m->tag);
    struct plan *kept = i >= 0 && r->tables->handlers->items[i].keep ? &r->tables->plans[i] : NULL;

    if (kept)
        kept->kept.elsewhere = (int)MIN(m->running, INT_MAX / 2);
    queue_elsewhere(&r->crew.queue, m->tag, kept ? 0 : m->running, m->all);
}

static void take_order(struct runner *r, const struct message *m)
{
    switch (m->type) {
    case MESSAGE_JOB:
        take_job(r, m->number, &m->job);
        break;
    case MESSAGE_DEADLINE:
        take_deadline(r, &m->deadline);
        break;
    case MESSAGE_VOUCH:
        take_vouch(r, m->vouch.until_us);
        break;
    case MESSAGE_KILL:
        take_kill(r, m->number, m->kill.reason);
        break;
    case MESSAGE_FOLLOW:
        take_follow(r, m->number, m->follow.what);
        break;
    case MESSAGE_RETURN:
        return_waiting(r);
        break;
    case MESSAGE_RELOAD:
        r->kept_digest = m->reload.digest;
        reload_ask(r->reload);
        break;
    case MESSAGE_ELSEWHERE:
        take_elsewhere(r, &m->elsewhere);
        break;
    case MESSAGE_PING:
        reply_pong(&r->out, m->ping.n);
        break;
    default: /* message_get_order returns no others */
        break;
    }
}

static void take_packet(struct runner *r)
{
    struct message m;
    int rc = proto_recv(&r->in, r->sock);

    while (rc > 0 && (rc = message_get_order(&r->in, &m)) > 0)
        take_order(r, &m);
    if (rc < 0)
        orphan(r);
}

/* ---- the process */

/* Writes what the log has folded; how long to wait at most for more of it to be due, given the wait
 * in ms (-1: for ever) that there is otherwise. */
static int fold_log(int wait)
{
    log_fold_flush(when_steady_us());
    int64_t next_us = log_fold_next();
    if (next_us == INT64_MAX)
        return wait;
    int most = (int)((next_us - when_steady_us()) / 1000) + 1;
    return wait < 0 || most < wait ? MAX(most, 0) : wait;
}

static void take_stream(struct runner *r, struct process_stream *s)
{
    stream_read(s, &r->crew.c, READ_TURN);
    crew_heard(&r->crew, s->process);
}

/* May begin where another thread had to leave it: in the middle of the starts. */
static void loop(void *ctx)
{
    struct epoll_event events[EVENTS];
    struct runner *r = ctx;

    crew_watch_from(&r->crew, when_steady());
    while (!r->orphaned || r->crew.jobs.running_count) {
        int wait = tick(r);
        if (wait == WAIT_LEFT)
            return;
        int n = epoll_wait(r->crew.c.epoll, events, EVENTS, fold_log(wait));
        bool ended = false, message = false;
        crew_watch(&r->crew);
        for (int i = 0; i < n; i++) {
            if (events[i].data.ptr == &r->signals || events[i].data.ptr == &r->crew.c.launcher)
                ended = true;
            else if (events[i].data.ptr == &r->timer)
                timer_expired(r);
            else if (events[i].data.ptr == &r->reload)
                reloaded(r);
            else if (events[i].data.ptr == &r->sock)
                message = events[i].events & ~(uint32_t)EPOLLOUT;
            else
                take_stream(r, events[i].data.ptr);
        }
        if (ended)
            drain_signals(r);
        if (ended ||
            crew_has_ending(
                &r->crew)) /* after the streams, because it frees the jobs that they belong to */
            crew_reap(&r->crew);
        if (message)
            take_packet(r);
    }
    log_fold_flush(INT64_MAX);
    _exit(0);
}

/* All are blocked, so that none interrupts or ends this process, and one call in a child undoes it.
 */
static void set_signals(void)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
    /* the kernel's struct sigaction for SIG_DFL: glibc's call refuses signals 32 and 33 */
    const unsigned long none[4] = {0};
    sigset_t blocked, kept;

    sigfillset(&blocked);
    sigemptyset(&kept);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        sigdelset(&blocked, faults[i]);
        sigaddset(&kept, faults[i]);
    }
    sigprocmask(SIG_SETMASK, &blocked, NULL);
    for (int sig = 1; sig < _NSIG; sig++)
        if (sigismember(&kept, sig) != 1)
            syscall(SYS_rt_sigaction, sig, none, NULL, sizeof(uint64_t));
}

/* Keeps the standard streams and the link open, which gets the lowest number. */
static int keep_only(int sock)
{
    if (sock != 3)
        dup3(sock, 3, O_CLOEXEC);
    if (syscall(__NR_close_range, 4, ~0u, 0) != 0)
        for (int fd = 4; fd < (int)sysconf(_SC_OPEN_MAX); fd++)
            close(fd);
    return 3;
}

static void watch_fd(struct runner *r, int fd, void *name)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = name};

    if (fd < 0 || epoll_ctl(r->crew.c.epoll, EPOLL_CTL_ADD, fd, &ev) != 0)
        _exit(1); /* the poller sees the end of the link */
}

/* In a process with threads, the kernel waits some 15 ms (synchronize_rcu) whenever the table of
 * descriptors grows, so it grows while there is one thread. */
static void grow_fd_table(rlim_t limit)
{
    int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, (int)MIN(limit, FDS_AT_START) - 1);

    if (fd >= 0)
        close(fd);
}

static void init_launcher(struct runner *r)
{
    int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    struct rlimit given, files;

    getrlimit(RLIMIT_NOFILE, &given);
    files = given;
    /* a waiting job with a long input holds one; handlers get the limit as it was */
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    grow_fd_table(files.rlim_cur);
    r->crew.c.launcher = launcher_new(null_fd, getpriority(PRIO_PROCESS, 0), &given);
    watch_fd(r, r->crew.c.launcher ? launcher_fd(r->crew.c.launcher) : -1, &r->crew.c.launcher);
}

static void init(struct runner *r, int sock, const struct runner_options *o, volatile pid_t *notes)
{
    sigset_t child;

    r->sock = sock;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    r->signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    r->crew.c.epoll = epoll_create1(EPOLL_CLOEXEC);
    watch_fd(r, r->sock, &r->sock);
    watch_fd(r, r->signals, &r->signals);
    r->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    r->timer_us = JOB_NEVER;
    watch_fd(r, r->timer, &r->timer);

    init_launcher(r);
    r->crew.c.out = &r->out;
    r->crew.c.json = json_reader_new();

    r->reload = reload_new(o->handlers_path);
    watch_fd(r, r->reload ? reload_fd(r->reload) : -1, &r->reload);
    r->default_user = o->default_user;
    r->config = o->config;
    crew_init(&r->crew, o->slots, notes);
    r->tables = table_new(o->handlers, o->default_user, o->config);
    proto_in_init(&r->in);
}

/* The first calls in the new process: afterwards handlers inherit nothing of the poller's, no
 * descriptor, no ignored signal, no name. */
static int take_over(int sock)
{
    prctl(PR_SET_NAME, "dqd-runner");
    set_signals();
    return keep_only(sock);
}

void runner_main(int sock, const struct runner_options *o, volatile pid_t *notes)
{
    static struct runner r;
    struct err e = {0};

    sock = take_over(sock);
    log_open("dqd-runner", o->log_level);
    init(&r, sock, o, notes);
    if (launcher_run(r.crew.c.launcher, loop, &r, &e) != 0)
        log_event(LOG_ERROR, "cannot start the runner", "error=%s", log_quote(e.text));
    _exit(1);
}
