/*
 * rehearse.c - see rehearse.h. Invariant: this side only sends one job and takes reports, as the
 * poller does; every rule is the runner's.
 */
#include "runner/rehearse.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/when.h"
#include "runner/link.h"
#include "runner/outcome.h"
#include "runner/plan.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <unistd.h>

#define NUMBER 0
/* Between two questions for output; and after an answer with some. */
#define ASK_EVERY_MS 100
#define ASK_SOON_MS 2
#define STOP_MS 10000

struct rehearse {
    struct link *link;
    const struct handlers *handlers;
    const char *default_user;
};

struct run {
    struct rehearse *r;
    const struct task *task;
    const struct handler *handler;
    void (*fn)(const void *p, size_t size, void *arg);
    void *arg;
    struct rehearse_result *result;
    uint64_t end, asked_end; /* of the output so far, and when it was asked for more */
    bool asked, ended;
};

static volatile sig_atomic_t signals;

static void on_signal(int sig)
{
    if (signals++)
        _exit(128 + sig); /* the runner ends the handler when it sees the end of the link */
}

int rehearse_start(const struct handlers *handlers, const char *default_user, const char *config,
                   struct rehearse **ret, struct err *err)
{
    const struct runner_options o = {.handlers_path = handlers->path,
                                     .handlers = handlers,
                                     .slots = 1,
                                     .default_user = default_user,
                                     .config = config,
                                     .log_level = LOG_WARN};
    struct link *link;
    int rc = link_start(&o, &link, err);

    if (rc < 0)
        return rc;
    *ret = mem_zero(1, sizeof **ret);
    **ret = (struct rehearse){link, handlers, default_user};
    return 0;
}

void rehearse_free(struct rehearse *r)
{
    if (!r)
        return;
    link_stop(r->link, STOP_MS);
    free(r);
}

/* A runner would find out, too, but its message is for operators of dqd. */
static int check_account(const struct rehearse *r, int handler, struct err *err)
{
    struct table *t = table_new(r->handlers, r->default_user, NULL);
    struct setup *s = setup_new(&t->plans[handler], err);
    int rc = s ? 0 : ERR_SYSTEM;

    if (s && s->switches && geteuid() != 0)
        rc = err_set(
            err, ERR_DENIED,
            "the handler \"%s\" runs as %s, and only root can become another account; nothing was run",
            r->handlers->items[handler].name, s->account.name);
    setup_free(s);
    table_free(t);
    return rc;
}

static int send(struct run *x, int handler, struct err *err)
{
    const struct message_job times = {.vouched_us = INT64_MAX,
                                      .deadline_at = when_steady() + WHEN_MAX_DURATION_MS};
    int rc = link_send_tasks(x->r->link, NUMBER, x->r->handlers, (uint32_t)handler, x->task, 1,
                             &times, err);

    if (rc < 0)
        return rc;
    link_send_follow(x->r->link, NUMBER, MESSAGE_FOLLOW_WHOLE);
    x->asked = true;
    return 0;
}

static void stop_if_asked(struct run *x)
{
    if (!signals || x->result->interrupted)
        return;
    x->result->interrupted = true;
    link_send_kill(x->r->link, NUMBER, MESSAGE_KILL_CANCELLED);
    link_push(x->r->link);
}

/* In pieces that a pipe takes at once: until then, a signal has its effect. */
static void take_chunk(struct run *x, const struct message_chunk *m)
{
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};

    for (size_t at = 0, n; at < m->size; at += n) {
        n = MIN(m->size - at, (size_t)PIPE_BUF);
        while (poll(&out, 1, -1) < 0 && errno == EINTR)
            stop_if_asked(x);
        x->fn((const char *)m->data + at, n, x->arg);
    }
    x->end = m->start + m->size;
    x->asked = m->more;
}

static void take_result(struct run *x, const struct message_result *m)
{
    struct rehearse_result *ret = x->result;
    const struct task *t = x->task;

    ret->ran = true;
    ret->event = outcome_event(m, x->handler, t->attempt, t->max_attempts, 0, 0, &ret->retry_ms);
    ret->permanent = m->permanent;
    ret->exit_code = m->exit_code;
    ret->signal = m->signal;
    if (m->error)
        err_set(&ret->error, ERR_STATE,
                outcome_recorded(m, ret->event) != m->outcome ? OUTCOME_SNOOZE_OVER : "%s",
                m->error);
}

static int take_report(struct run *x, const struct message *m, struct err *err)
{
    switch (m->type) {
    case MESSAGE_CHUNK:
        take_chunk(x, &m->chunk);
        break;
    case MESSAGE_RESULT:
        take_result(x, &m->result);
        break;
    case MESSAGE_RETURNED:
        if (m->returned.error)
            err_set(&x->result->error, ERR_SYSTEM, "%s", m->returned.error);
        x->ended = true;
        break;
    case MESSAGE_ENDED:
        x->ended = true;
        break;
    case MESSAGE_GONE:
        return err_set(err, ERR_SYSTEM, "the runner process died");
    default:
        break;
    }
    return 0;
}

static int loop(struct run *x, struct err *err)
{
    struct link *l = x->r->link;
    struct pollfd p = {.fd = link_fd(l)};
    int64_t ask_at = 0;
    struct message m;
    int rc = 0;

    while (rc == 0 && !x->ended) {
        stop_if_asked(x);
        if (!x->asked && when_steady() >= ask_at) {
            link_send_follow(l, NUMBER, MESSAGE_FOLLOW_MORE);
            x->asked = true;
            x->asked_end = x->end;
            ask_at = when_steady() + ASK_EVERY_MS;
        }
        if (link_flush(l, err) < 0)
            return ERR_SYSTEM;
        p.events = (short)(link_wants_write(l) ? POLLIN | POLLOUT : POLLIN);
        (void)poll(&p, 1, x->end > x->asked_end ? ASK_SOON_MS : ASK_EVERY_MS);
        while (rc == 0 && !x->ended && link_next(l, &m))
            rc = take_report(x, &m, err);
        if (x->end > x->asked_end)
            ask_at = MIN(ask_at, when_steady() + ASK_SOON_MS);
    }
    return rc;
}

int rehearse_run(struct rehearse *r, const struct task *task, int handler,
                 void (*fn)(const void *p, size_t size, void *arg), void *arg,
                 struct rehearse_result *ret, struct err *err)
{
    struct run x = {.r = r,
                    .task = task,
                    .handler = &r->handlers->items[handler],
                    .fn = fn,
                    .arg = arg,
                    .result = ret};
    const struct sigaction catch = {.sa_handler = on_signal};
    struct sigaction old_int, old_term;

    *ret = (struct rehearse_result){.exit_code = -1};
    int rc = check_account(r, handler, err);
    if (rc < 0)
        return rc;
    sigaction(SIGINT, &catch, &old_int);
    sigaction(SIGTERM, &catch, &old_term);
    rc = send(&x, handler, err);
    if (rc == 0)
        rc = loop(&x, err);
    sigaction(SIGINT, &old_int, NULL);
    sigaction(SIGTERM, &old_term, NULL);
    return rc;
}
