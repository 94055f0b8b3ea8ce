/*
 * launch.c - starts processes, and passes the loop to another thread when a start hangs.
 *
 * Invariants: exactly one thread owns the loop and all that belongs to it. While it starts a
 * process, `now` is that launch; the thread that sets `now` to NULL owns the loop: the same thread
 * when the start is over, or another one that takes over. A thread reads a job only before the
 * process exists (`note`), so that the job may be freed while the thread is stuck.
 */
#include "runner/launch.h"

#include "base/mem.h"
#include "base/when.h"
#include "runner/child.h"
#include "runner/env.h"
#include "runner/plan.h"

#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define SLOW_MS 50
/* modules of the account database may need much */
#define STACK_SIZE ((size_t)512 << 10)

struct launcher {
    int null_fd, nice;
    struct rlimit files;
    launch_loop *loop;
    void *ctx;
    /* what the owner of the loop is starting; NULL: nothing, or the loop was taken over from it */
    _Atomic(struct launch *) now;
    /* of the last start: its launch may be freed already when another thread checks */
    atomic_llong began_at;
    int timer_fd; /* wakes a thread that stands by */
    atomic_int armed;
    atomic_int standing_by;
    pthread_mutex_t lock; /* for `over`; only ever held for a moment */
    struct launch *over;
    int event_fd;
};

static void close_end(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void launch_over(struct launch *a)
{
    struct plan *p = a->plan;

    if (a->slow)
        (*(a->given_up ? &p->given_up : &p->hanging))--;
    a->slow = false;
    if (p->setup)
        setup_free(a->fresh);
    else
        p->setup = a->fresh;
    a->fresh = NULL;
    if (a->err == a->out)
        a->err = -1;
    close_end(&a->in);
    close_end(&a->out);
    close_end(&a->err);
    close_end(&a->reply);
}

static void start(struct launcher *l, struct launch *a, struct env_room *room)
{
    const struct handler *h = a->plan->handler;
    const struct setup *s = a->setup;
    int looks_up = LAUNCH_LOOKS_UP;

    if (!s)
        s = a->fresh = setup_new(a->plan, &a->failure);
    if (!atomic_compare_exchange_strong(&a->stage, &looks_up, LAUNCH_FORKS) || !s)
        return;
    /* it may open /dev/stdout, /dev/stderr and /dev/fd/3 by these names */
    if (s->switches && fchmod(a->out, 0622) == 0 && fchmod(a->err, 0622) == 0)
        (void)fchmod(a->reply, 0622);
    const struct child_spec spec = {
        .programs = s->programs,
        .argv = (char *const *)a->plan->argv,
        .shell = a->plan->words ? (char *const *)a->plan->shell : NULL,
        .envp = env_make(room, a->job, s),
        .in = a->in >= 0 ? a->in : l->null_fd,
        .out = a->out,
        .err = a->err,
        .reply = a->reply,
        .cwd = h->cwd ? h->cwd : "/",
        .account = s->switches ? &s->account : NULL,
        .umask = (mode_t)h->umask,
        .nice = l->nice + h->nice,
        .set_nice = h->nice != 0,
        .files = &l->files,
        .note = a->note,
    };
    a->begun_us = when_steady_us();
    if (child_start(&spec, &a->pid, &a->failure) != 0)
        *a->note = 0;
}

static void arm(struct launcher *l)
{
    const struct itimerspec when = {.it_value = {.tv_nsec = SLOW_MS * 1000000}};

    if (!atomic_exchange(&l->armed, 1))
        timerfd_settime(l->timer_fd, 0, &when, NULL);
}

static void hand_in(struct launcher *l, struct launch *a)
{
    pthread_mutex_lock(&l->lock);
    a->next = l->over;
    l->over = a;
    pthread_mutex_unlock(&l->lock);
    eventfd_write(l->event_fd, 1);
}

bool launch_run(struct launcher *l, struct launch *a)
{
    static _Thread_local struct env_room room;
    struct launch *mine = a;

    a->begun_at = when_steady();
    atomic_store(&l->began_at, a->begun_at);
    atomic_store(&l->now, a);
    arm(l);
    start(l, a, &room);
    if (atomic_compare_exchange_strong(&l->now, &mine, NULL))
        return true;
    hand_in(l, a);
    return false;
}

/* ---- threads */

static void *thread_main(void *arg);

/* 0, or errno. */
static int add_thread(struct launcher *l)
{
    pthread_attr_t attr;
    pthread_t thread;
    int rc;

    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_SIZE);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    atomic_fetch_add(&l->standing_by, 1);
    rc = pthread_create(&thread, &attr, thread_main, l);
    pthread_attr_destroy(&attr);
    if (rc)
        atomic_fetch_sub(&l->standing_by, 1);
    return rc;
}

/* True: this thread owns the loop now. Until then the launch must not be touched: its owner may be
 * about to free it. */
static bool take_over(struct launcher *l, struct launch *a)
{
    if (when_steady() - atomic_load(&l->began_at) < SLOW_MS - 1 ||
        !atomic_compare_exchange_strong(&l->now, &a, NULL))
        return false;
    a->slow = true;
    a->plan->hanging++;
    return true;
}

static void stand_by(struct launcher *l)
{
    uint64_t times;

    for (;;) {
        if (read(l->timer_fd, &times, sizeof times) < 0)
            continue;
        atomic_store(&l->armed, 0);
        struct launch *a = atomic_load(&l->now);
        if (!a)
            continue;
        /* The last thread that stands by must stay, or none could help the next time. */
        if ((atomic_load(&l->standing_by) > 1 || add_thread(l) == 0) && take_over(l, a))
            return;
        arm(l);
    }
}

static void *thread_main(void *arg)
{
    struct launcher *l = arg;

    for (;;) {
        stand_by(l);
        atomic_fetch_sub(&l->standing_by, 1);
        l->loop(l->ctx);
        atomic_fetch_add(&l->standing_by, 1);
    }
    return NULL;
}

static void *first_main(void *arg)
{
    struct launcher *l = arg;

    l->loop(l->ctx);
    atomic_fetch_add(&l->standing_by, 1);
    return thread_main(l);
}

struct launcher *launcher_new(int null_fd, int nice, const struct rlimit *files)
{
    struct launcher *l = mem_zero(1, sizeof *l);

#ifdef M_ARENA_MAX
    mallopt(M_ARENA_MAX, 1); /* threads take turns: one heap is enough */
#endif
    l->null_fd = null_fd;
    l->nice = nice;
    l->files = *files;
    pthread_mutex_init(&l->lock, NULL);
    l->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    l->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    if (l->event_fd >= 0 && l->timer_fd >= 0)
        return l;
    free(l);
    return NULL;
}

int launcher_run(struct launcher *l, launch_loop *loop, void *ctx, struct err *err)
{
    pthread_t first;
    int rc;

    l->loop = loop;
    l->ctx = ctx;
    rc = add_thread(l);
    if (!rc)
        rc = pthread_create(&first, NULL, first_main, l);
    if (rc)
        return err_set(err, ERR_SYSTEM, "pthread_create: %s", strerror(rc));
    for (;;)
        pause();
}

int launcher_fd(const struct launcher *l)
{
    return l->event_fd;
}

struct launch *launcher_take(struct launcher *l)
{
    eventfd_t times;

    eventfd_read(l->event_fd, &times);
    pthread_mutex_lock(&l->lock);
    struct launch *over = l->over;
    l->over = NULL;
    pthread_mutex_unlock(&l->lock);
    return over;
}

bool launch_drop(struct launch *a)
{
    int looks_up = LAUNCH_LOOKS_UP;

    if (!a->given_up) {
        a->plan->hanging--;
        a->plan->given_up++;
    }
    a->given_up = true;
    if (atomic_compare_exchange_strong(&a->stage, &looks_up, LAUNCH_DROPPED) ||
        looks_up == LAUNCH_DROPPED)
        return true;
    pid_t pid = *a->note;
    if (pid > 0)
        kill(pid, SIGKILL);
    return false;
}
