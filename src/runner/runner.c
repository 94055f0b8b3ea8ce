/*
 * runner.c - the runner process: a loop over the link, the pipes of its children and their ends. Its tick does what time asks for
 * and returns how long to wait.
 *
 * Invariants: nothing here waits for anybody but in epoll_wait (and for a new child until it executes its program); on waking, what
 * is past its deadline is killed before anything else is looked at; whatever the poller sends, only what stands in the runner's own
 * handlers table is executed.
 */
#include "runner/runner.h"

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/when.h"
#include "runner/job.h"
#include "runner/plan.h"
#include "runner/process.h"
#include "runner/proto.h"
#include "runner/queue.h"
#include "runner/reload.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define BUCKETS 1024          /* of the table of jobs */
#define EVENTS 64             /* taken per turn */
#define STARTS 8              /* per turn: each takes a fraction of a millisecond */
#define READ_TURN (64 * 1024) /* bytes taken from one stream per turn */
#define WAIT_MAX_MS 1000      /* no long sleep is trusted while handlers run: a suspended host stops the clock of epoll_wait */

struct runner {
    const char *default_user;
    struct reload *reload;
    uint64_t kept_digest; /* of the table that the poller used when it last asked for a reload */
    int sock, signals;
    int timer;        /* goes off when an early job's time comes: epoll_wait knows milliseconds only */
    int64_t timer_us; /* what it is set to; JOB_NEVER: not */
    volatile unsigned char *begun;
    bool orphaned;  /* the poller is gone: kill all, then end */
    bool sock_full; /* reports wait until it takes more */
    int slots;
    struct job *buckets[BUCKETS];
    struct queue queue;
    struct job **running;
    size_t running_count;
    int64_t watch_at;     /* no deadline of any job is before this */
    struct table *tables; /* the first is in use */
    struct proto_in in;
    struct proto_out out;
    struct job_context c;
};

/* ---- jobs by number */

static struct job **find_job(struct runner *r, uint32_t number)
{
    struct job **at = &r->buckets[number % BUCKETS];

    while (*at && (*at)->number != number)
        at = &(*at)->bucket_next;
    return at;
}

static void watch_from(struct runner *r, int64_t at)
{
    if (at < r->watch_at)
        r->watch_at = at;
}

/* A job that is in no line and does not run. */
static void forget(struct runner *r, struct job *j)
{
    *find_job(r, j->number) = j->bucket_next;
    if (j->lane)
        queue_leave(&r->queue, j);
    if (j->table)
        j->table->users--;
    job_free(j);
}

static void give_back(struct runner *r, struct job *j, bool cannot_start, const char *why)
{
    queue_take(&r->queue, j);
    job_return(j, &r->c, cannot_start, why);
    forget(r, j);
}

/* ---- deadlines */

/* Looks at every deadline, and notes the next. */
static void watch(struct runner *r)
{
    int64_t now = when_steady();
    struct job *next;

    if (now < r->watch_at)
        return;
    r->watch_at = JOB_NEVER;
    for (size_t i = 0; i < r->running_count; i++)
        watch_from(r, job_watch(r->running[i], now));
    for (struct lane *l = r->queue.lanes, *after; l; l = after) {
        after = l->all_next; /* its last job takes the lane along */
        for (struct job *j = l->first; j; j = next) {
            next = j->next;
            if (job_late_at(j) <= now)
                give_back(r, j, false, NULL);
            else
                watch_from(r, job_late_at(j));
        }
    }
}

static void stop(struct runner *r, struct job *j, enum job_stop why)
{
    int64_t now = when_steady();

    job_stop(j, why, now);
    watch_from(r, job_watch(j, now));
}

/* ---- the tick */

static void start(struct runner *r, struct job *j)
{
    struct err e = {0};

    if (j->number < PROCESS_BEGUN_MAX)
        r->begun[j->number] = 1;
    if (job_start(j, &r->c, &e) != 0) {
        give_back(r, j, true, e.text);
        return;
    }
    queue_take(&r->queue, j);
    j->lane->running++;
    r->running[r->running_count++] = j;
    watch_from(r, job_watch(j, j->start_at));
}

/* Starts what may start. True: there may be more. */
static bool start_some(struct runner *r)
{
    for (int n = 0; n < STARTS; n++) {
        struct job *j = queue_pick(&r->queue, r->slots - (int)r->running_count, r->slots);
        if (!j)
            return false;
        if (job_late_at(j) <= when_steady())
            give_back(r, j, false, NULL);
        else
            start(r, j);
    }
    return true;
}

static void flush(struct runner *r)
{
    int rc = proto_flush(&r->out, r->sock);
    bool full = rc > 0;

    if (rc < 0)
        proto_out_done(&r->out); /* nobody listens; the end of file comes as well */
    if (full != r->sock_full) {
        struct epoll_event ev = {.events = full ? EPOLLIN | EPOLLOUT : EPOLLIN, .data.ptr = &r->sock};
        epoll_ctl(r->c.epoll, EPOLL_CTL_MOD, r->sock, &ev);
        r->sock_full = full;
    }
}

static void set_timer(struct runner *r, int64_t at_us)
{
    struct itimerspec when = {.it_value = {.tv_sec = at_us / 1000000, .tv_nsec = at_us % 1000000 * 1000}};

    if (at_us == JOB_NEVER || at_us == r->timer_us)
        return;
    timerfd_settime(r->timer, TFD_TIMER_ABSTIME, &when, NULL);
    r->timer_us = at_us;
}

static void timer_went_off(struct runner *r)
{
    uint64_t times;

    if (read(r->timer, &times, sizeof times) > 0)
        r->timer_us = JOB_NEVER;
}

/* Milliseconds to wait; -1: until something happens. */
static int tick(struct runner *r)
{
    int64_t early_us = queue_ripen(&r->queue, when_steady_us());
    bool more = !r->orphaned && start_some(r);

    set_timer(r, early_us);
    log_catch_up();
    if (r->orphaned)
        proto_out_done(&r->out);
    else
        flush(r);
    if (more)
        return 0;
    if (r->watch_at == JOB_NEVER)
        return -1;
    int64_t wait = r->watch_at - when_steady();
    return wait < 0 ? 0 : wait < WAIT_MAX_MS ? (int)wait : WAIT_MAX_MS;
}

/* ---- ends of children */

static void reap(struct runner *r)
{
    struct signalfd_siginfo si;
    pid_t pid;

    if (read(r->signals, &si, sizeof si) < 0)
        return;
    while ((pid = child_ended()) > 0) {
        size_t i = 0;
        while (i < r->running_count && r->running[i]->pid != pid)
            i++;
        if (i == r->running_count) {
            child_reap(pid); /* a stranger, handed down by whoever became this process */
            continue;
        }
        struct job *j = r->running[i];
        r->running[i] = r->running[--r->running_count];
        j->lane->running--;
        job_finish(j, &r->c);
        forget(r, j);
    }
}

/* ---- messages */

static struct table *find_table(struct runner *r, uint64_t digest)
{
    struct table *t = r->tables;

    while (t && t->handlers->digest != digest)
        t = t->next;
    return t;
}

static void take_job(struct runner *r)
{
    struct job *j = job_receive(&r->in, when_steady());

    if (!j)
        return;
    struct table *t = find_table(r, j->digest);
    struct job **at = find_job(r, j->number);
    if (*at || (t && (j->handler >= t->handlers->count || (j->count > 1 && t->handlers->items[j->handler].batch < 2)))) {
        r->in.bad = true;
        job_free(j);
    } else if (!t) {
        job_return(j, &r->c, false, "the handlers file has changed");
        job_free(j);
    } else {
        *at = j;
        j->table = t;
        j->plan = &t->plans[j->handler];
        t->users++;
        queue_add(&r->queue, j, j->tag);
        watch_from(r, job_late_at(j));
    }
}

static void take_deadlines(struct runner *r)
{
    int64_t deadline_at = proto_get_i64(&r->in), now = when_steady();
    size_t size;
    const char *numbers = proto_get_bytes(&r->in, &size);

    for (uint32_t number; size >= sizeof number; numbers += sizeof number, size -= sizeof number) {
        memcpy(&number, numbers, sizeof number);
        struct job *j = *find_job(r, number);
        if (j)
            job_set_deadline(j, deadline_at, now);
    }
}

static void take_kill(struct runner *r)
{
    static const enum job_stop why[] = {
        [RUNNER_KILL_CANCELLED] = JOB_CANCELLED,
        [RUNNER_KILL_LOST] = JOB_LOST,
        [RUNNER_KILL_SHUTDOWN] = JOB_SHUT_DOWN,
    };
    uint32_t number = proto_get_u32(&r->in), reason = proto_get_u32(&r->in);
    struct job *j = *find_job(r, number);

    if (r->in.bad || reason >= sizeof why / sizeof why[0])
        r->in.bad = true;
    else if (j && j->pid)
        stop(r, j, why[reason]);
    else if (j)
        give_back(r, j, false, NULL);
}

static void return_waiting(struct runner *r)
{
    struct job *j;

    while ((j = queue_any(&r->queue)))
        give_back(r, j, false, NULL);
}

/* Tables that no job uses go, but for the one in use, the one before and the poller's: jobs by these may be on their way. */
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

/* The poller makes its table of the very text that ours is made of: a file that changes meanwhile cannot make them differ. */
static void reloaded(struct runner *r)
{
    struct handlers *h;
    struct err e = {0};
    int text;

    if (!reload_take(r->reload, &h, &text, &e))
        return;
    proto_begin(&r->out, PROTO_RELOADED, 12 + PROTO_TEXT_ROOM(sizeof e.text), text);
    if (h && h->digest != r->tables->handlers->digest) {
        struct table *t = table_new(h, r->default_user);
        t->owned = h;
        t->next = r->tables;
        r->tables = t;
        drop_tables(r);
    } else {
        handlers_free(h);
    }
    proto_put_u64(&r->out, r->tables->handlers->digest);
    proto_put_u32(&r->out, text >= 0);
    proto_put_text(&r->out, text >= 0 ? NULL : e.text);
    proto_end(&r->out);
}

static void take_reload(struct runner *r)
{
    r->kept_digest = proto_get_u64(&r->in);
    if (!r->in.bad)
        reload_ask(r->reload);
}

static void take_ping(struct runner *r)
{
    uint64_t n = proto_get_u64(&r->in);

    proto_begin(&r->out, PROTO_PONG, 8, -1);
    proto_put_u64(&r->out, n);
    proto_end(&r->out);
}

/* The poller is gone, or is not itself any more. The link stays open: its end tells runner_stop that every handler is gone. */
static void orphan(struct runner *r)
{
    epoll_ctl(r->c.epoll, EPOLL_CTL_DEL, r->sock, NULL);
    r->orphaned = true;
    return_waiting(r);
    if (r->running_count)
        log_event(LOG_WARN, "the poller is gone, its handlers are killed", "running=%zu", r->running_count);
    for (size_t i = 0; i < r->running_count; i++)
        stop(r, r->running[i], JOB_SHUT_DOWN);
}

static void take_packet(struct runner *r)
{
    int type, rc = proto_recv(&r->in, r->sock);

    while (rc > 0 && (type = proto_next(&r->in)) != 0) {
        switch (type) {
        case PROTO_JOB:
            take_job(r);
            break;
        case PROTO_DEADLINE:
            take_deadlines(r);
            break;
        case PROTO_KILL:
            take_kill(r);
            break;
        case PROTO_RETURN:
            return_waiting(r);
            break;
        case PROTO_RELOAD:
            take_reload(r);
            break;
        case PROTO_PING:
            take_ping(r);
            break;
        default:
            r->in.bad = true;
        }
        if (r->in.bad)
            rc = -1;
    }
    if (rc < 0)
        orphan(r);
}

/* ---- the process */

static void loop(struct runner *r)
{
    struct epoll_event events[EVENTS];

    while (!r->orphaned || r->running_count) {
        int n = epoll_wait(r->c.epoll, events, EVENTS, tick(r));
        bool ended = false, message = false;
        watch(r);
        for (int i = 0; i < n; i++) {
            if (events[i].data.ptr == &r->signals)
                ended = true;
            else if (events[i].data.ptr == &r->timer)
                timer_went_off(r);
            else if (events[i].data.ptr == &r->reload)
                reloaded(r);
            else if (events[i].data.ptr == &r->sock)
                message = events[i].events & ~(uint32_t)EPOLLOUT;
            else
                job_read(events[i].data.ptr, &r->c, READ_TURN);
        }
        if (ended) /* after the streams: it frees jobs that they belong to */
            reap(r);
        if (message)
            take_packet(r);
    }
}

static void watch_fd(struct runner *r, int fd, void *name)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = name};

    if (fd < 0 || epoll_ctl(r->c.epoll, EPOLL_CTL_ADD, fd, &ev) != 0)
        _exit(1); /* the poller sees the end of the link */
}

static void init(struct runner *r, int sock, const struct runner_options *o)
{
    struct rlimit files;
    sigset_t child;

    r->sock = sock;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    r->signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    r->c.epoll = epoll_create1(EPOLL_CLOEXEC);
    r->c.null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    watch_fd(r, r->sock, &r->sock);
    watch_fd(r, r->signals, &r->signals);
    r->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    r->timer_us = JOB_NEVER;
    watch_fd(r, r->timer, &r->timer);

    getrlimit(RLIMIT_NOFILE, &r->c.files);
    files = r->c.files;
    files.rlim_cur = files.rlim_max; /* a waiting job holds a descriptor; handlers get the old limit */
    setrlimit(RLIMIT_NOFILE, &files);
    r->c.nice = getpriority(PRIO_PROCESS, 0);
    r->c.out = &r->out;
    r->c.json = json_reader_new();

    r->reload = reload_new(o->handlers_path);
    watch_fd(r, r->reload ? reload_fd(r->reload) : -1, &r->reload);
    r->default_user = o->default_user;
    r->slots = o->slots;
    r->running = mem_zero((size_t)o->slots, sizeof(struct job *));
    r->watch_at = JOB_NEVER;
    r->tables = table_new(o->handlers, o->default_user);
    proto_in_init(&r->in);
}

void runner_main(int sock, const struct runner_options *o, volatile unsigned char *begun)
{
    static struct runner r;

    sock = process_take_over(sock);
    log_open("dqd-runner", o->log_level);
    init(&r, sock, o);
    r.begun = begun;
    loop(&r);
    _exit(0);
}
