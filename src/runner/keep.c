/*
 * keep.c - keeps processes, and judges what they say.
 *
 * Invariants: a process gets a job only while it is idle, and is idle only without a job, a fault
 * or an end of file on its stdin; an answer counts only for a task of the job that it has.
 */
#include "runner/keep.h"

#include "base/log.h"
#include "base/log_fold.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/when.h"
#include "runner/answer.h"
#include "runner/notes.h"
#include "runner/reply.h"
#include "runner/session.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/param.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* So many processes that end in a row, and have read no task, make the tags rest. Those that have
 * must not: that task has a failed attempt, and the others may be of another tag. */
#define ENDS_MOST 3
#define WHY_MS 10000 /* a reason counts for jobs that come within this time */
/* Since it closed a pipe: most processes that do so are about to end, and their status says more.
 */
#define CLOSED_MS 200
#define WEIGH_MS 100           /* a look at all processes takes a millisecond */
#define FEED_MAX (1024 * 1024) /* at a time */
#define QUOTED_MAX 200
/* A start takes twice the descriptors that a process that stays has. */
#define ROOM 2

static uint64_t mark_of(const struct handler *h)
{
    uint64_t mark = TEXT_HASH_INIT;
    struct stat st;

    for (char *const *path = h->restart_on; path && *path; path++) {
        if (stat(*path, &st) != 0)
            memset(&st, 0, sizeof st);
        mark = text_hash(mark, &st.st_dev, sizeof st.st_dev);
        mark = text_hash(mark, &st.st_ino, sizeof st.st_ino);
        mark = text_hash(mark, &st.st_mtim, sizeof st.st_mtim);
    }
    return mark;
}

/* ---- plans */

bool keep_is(const struct process *p)
{
    return p->launch.plan->contract->stays;
}

bool keep_wants(const struct plan *plan)
{
    const struct plan_kept *k = &plan->kept;

    const bool hangs = plan->hanging || (plan->given_up && k->live);

    /* those that do not go hold back others */
    return k->why || k->idle ||
           (!hangs && k->live + k->elsewhere < plan->handler->keep &&
            k->retired <= plan->handler->keep && k->starting < k->waiting);
}

char *keep_refusal(struct plan *plan)
{
    char *why = plan->kept.why;

    plan->kept.why = NULL;
    if (why && when_steady() - plan->kept.why_at < WHY_MS)
        return why;
    free(why);
    return NULL;
}

volatile pid_t *keep_note(volatile pid_t *notes)
{
    for (size_t i = NOTES_MAX; i < NOTES_MAX + NOTES_KEPT; i++)
        if (!notes[i] || notes[i] == NOTES_CLEARED)
            return &notes[i];
    return NULL;
}

void keep_refuse(struct plan *plan, const char *why)
{
    free(plan->kept.why);
    plan->kept.why = mem_strdup(why);
    plan->kept.ends = 0;
    plan->kept.why_at = when_steady();
}

static void leave_idle(struct process *p)
{
    struct process **at = &p->launch.plan->kept.idle;

    if (!p->kept.idle)
        return;
    while (*at != p)
        at = &(*at)->kept.next;
    *at = p->kept.next;
    p->kept.idle = false;
}

void keep_leave(struct process *p)
{
    leave_idle(p);
    if (p->kept.left)
        return;
    p->kept.left = true;
    p->launch.plan->kept.live--;
    p->launch.plan->kept.starting -= !p->kept.ready;
}

/* ---- the life of a process */

void keep_begin(struct process *p)
{
    p->kept.mark = mark_of(p->launch.plan->handler);
    p->launch.plan->kept.live++;
    p->launch.plan->kept.starting++;
}

static void fault(struct process *p, int64_t after_ms, const char *text)
{
    keep_leave(p);
    if (p->fault)
        return;
    p->fault = mem_strdup(text);
    p->until_at = when_steady() + after_ms;
    p->until_why = PROCESS_AT_FAULT;
}

static void fault_line(struct process *p, const char *what, const char *line, size_t len)
{
    BUF_LOCAL struct buf text = BUF_INIT;

    buf_str(&text, what);
    text_escape(&text, line, len, QUOTED_MAX);
    fault(p, 0, text.data);
}

static void fault_closed(struct process *p, const char *text)
{
    p->kept.closed |= !p->fault;
    fault(p, CLOSED_MS, text);
}

static void note_replaced(struct plan *plan, enum message_kept_why why, const char *text)
{
    struct message_kept *m = &plan->kept.tell;

    m->replaced[why]++;
    free((char *)m->last);
    m->last = mem_strdup(text);
}

/* why: MESSAGE_KEPT_WHYS: it is not needed any more. */
static void retire(struct process *p, int64_t now, enum message_kept_why why)
{
    if (why < MESSAGE_KEPT_WHYS)
        note_replaced(p->launch.plan, why, message_kept_whys[why]);
    keep_leave(p);
    p->launch.plan->kept.retired++;
    close(p->streams[PROCESS_IN].fd);
    p->streams[PROCESS_IN].fd = -1;
    p->until_at = now + p->launch.plan->handler->kill_grace_ms;
    p->until_why = PROCESS_RETIRED;
}

/* Why it is; MESSAGE_KEPT_WHYS: it is not. One that has done nothing is not weighed: the next one
 * would be as large. */
static enum message_kept_why is_used_up(struct process *p, int64_t now)
{
    const struct handler_recycle *r = &p->launch.plan->handler->recycle;
    int64_t *weigh_at = &p->launch.plan->kept.weigh_at;

    if (p->kept.done >= r->tasks)
        return MESSAGE_KEPT_TASKS;
    if (now >= p->kept.age_at)
        return MESSAGE_KEPT_AGE;
    if (!r->memory || !p->kept.done || now < *weigh_at)
        return MESSAGE_KEPT_WHYS;
    *weigh_at = now + WEIGH_MS;
    return session_memory(p->pid) > r->memory ? MESSAGE_KEPT_MEMORY : MESSAGE_KEPT_WHYS;
}

int64_t keep_make_room(const struct jobs *jobs, int failure)
{
    const int64_t now = when_steady();

    for (bool some = false;; some = true) {
        struct process *oldest = NULL, *p;
        int leaving = 0;

        for (size_t i = 0; failure == ERR_TRANSIENT && i < jobs->running_count; i++) {
            p = jobs->running[i];
            leaving += keep_is(p) && p->streams[PROCESS_IN].fd < 0;
            if (p->kept.idle && (!oldest || p->kept.idle_at < oldest->kept.idle_at))
                oldest = p;
        }
        if (!oldest || leaving >= ROOM)
            return some ? now : JOB_NEVER;
        retire(oldest, now, MESSAGE_KEPT_WHYS);
    }
}

static void be_idle(struct process *p, int64_t now)
{
    struct plan_kept *k = &p->launch.plan->kept;
    enum message_kept_why why;

    if (p->kept.left || p->stop != PROCESS_RUNS)
        return;
    if ((why = is_used_up(p, now)) < MESSAGE_KEPT_WHYS) {
        retire(p, now, why);
        return;
    }
    p->kept.idle = true;
    p->kept.idle_at = now;
    p->kept.next = k->idle; /* the last one first, so that others can be idle for long */
    k->idle = p;
    p->until_at = MIN(p->kept.age_at, now + p->launch.plan->handler->recycle.idle_ms);
    if (p->table->old)
        p->until_at = now;
    p->until_why = PROCESS_RETIRED;
}

void keep_done(struct process *p, int64_t now)
{
    p->kept.done++;
    p->launch.plan->kept.ends = 0;
    be_idle(p, now);
}

void keep_watch(struct process *p, int64_t now)
{
    if (p->kept.idle && now >= p->until_at)
        retire(p, now, now >= p->kept.age_at ? MESSAGE_KEPT_AGE : MESSAGE_KEPT_WHYS);
}

int64_t keep_age_ms(int64_t age_ms, pid_t pid)
{
    return age_ms - age_ms * (pid % 64) / 640;
}

void keep_started(struct process *p)
{
    if (p->kept.ready) {
        const int64_t now = when_steady();

        p->kept.age_at = now + keep_age_ms(p->launch.plan->handler->recycle.age_ms, p->pid);
        be_idle(p, now);
        return;
    }
    p->until_at = p->launch.begun_us / 1000 + p->launch.plan->handler->start_timeout_ms;
    p->until_why = PROCESS_NOT_READY;
}

/* A launch that is not over yet does not know its pid. */
static void become_ready(struct process *p)
{
    p->kept.ready = true;
    p->launch.plan->kept.starting--;
    if (!p->launching)
        keep_started(p);
}

struct process *keep_take(struct plan *plan, int64_t now)
{
    struct plan_kept *k = &plan->kept;
    const uint64_t mark = k->idle ? mark_of(plan->handler) : 0;
    struct process *p;

    while ((p = k->idle) && p->kept.mark != mark) {
        /* several that one change meets count once */
        if (!p->kept.done && p->kept.mark != k->unused && ++k->ends == ENDS_MOST)
            keep_refuse(plan, "restart_on: a file changes again before a process is ready");
        k->unused = p->kept.done ? k->unused : p->kept.mark;
        retire(p, now, MESSAGE_KEPT_RESTART_ON);
    }
    return p;
}

/* ---- a job */

static void watch_input(struct process *p, struct process_context *c, bool full)
{
    struct process_stream *in = &p->streams[PROCESS_IN];
    struct epoll_event ev = {.events = EPOLLOUT, .data.ptr = in};

    if (full != p->kept.full)
        epoll_ctl(c->epoll, full ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, in->fd, &ev);
    p->kept.full = full;
}

/* The next piece of the input, as write(2); 0: there is none left. */
static ssize_t feed(struct process *p)
{
    const struct message_job *o = &p->job->order;
    const size_t left = (size_t)(p->kept.input - p->kept.fed);
    const int to = p->streams[PROCESS_IN].fd;
    off_t at = p->kept.fed;

    if (!left || o->stdin_fd < 0)
        return left ? write(to, (const char *)o->input + at, left) : 0;
    return sendfile(to, o->stdin_fd, &at, MIN(left, FEED_MAX));
}

void keep_feed(struct process *p, struct process_context *c)
{
    ssize_t n = 0;

    if (!p->job)
        return;
    while ((n = feed(p)) > 0 || (n < 0 && errno == EINTR))
        p->kept.fed += MAX(n, 0);
    watch_input(p, c, n < 0 && errno == EAGAIN);
    if (n < 0 && !p->kept.full)
        fault_closed(p, "it has closed its standard input");
}

void keep_give(struct process *p, struct job *j, struct process_context *c)
{
    leave_idle(p);
    process_join(p, j);
    capture_init(&j->tail, j->plan->handler->output_limit);
    p->begun_us = when_steady_us();
    p->until_at = p->begun_us / 1000 + j->plan->handler->timeout_ms;
    p->until_why = PROCESS_TIMED_OUT;
    p->kept.fed = 0;
    p->kept.input = (int64_t)j->order.input_size;
    if (j->order.stdin_fd >= 0)
        p->kept.input = lseek(j->order.stdin_fd, 0, SEEK_END);
    keep_feed(p, c);
}

/* Of the job's input, in its stdin. */
static int unread_bytes(const struct process *p)
{
    int left = 0;

    return ioctl(p->streams[PROCESS_IN].fd, FIONREAD, &left) == 0 ? left : 0;
}

bool keep_unread(const struct process *p)
{
    return (p->stop == PROCESS_RUNS || p->stop == PROCESS_LEASE_ENDS || p->stop == PROCESS_LOST ||
            p->stop == PROCESS_SHUT_DOWN || (p->stop == PROCESS_AT_FAULT && p->kept.closed)) &&
           unread_bytes(p) == p->kept.fed;
}

/* ---- what it says */

static bool is_ready_line(struct json_reader *json, const char *line, size_t len)
{
    static const struct json_member ready = {"ready", JSON_BOOL, true};
    struct json_value v;
    struct err why;

    return json_read_object(json, line, len, &ready, 1, &v, &why) == 0 && v.number;
}

static void take_answer(struct process *p, struct process_context *c, const char *line, size_t len,
                        bool whole)
{
    struct job *j = p->job;
    const char *why = NULL;
    struct verdict v;

    if (p->stop != PROCESS_RUNS && j->order.count == 1)
        return; /* too late: how it was stopped counts */
    if (j->open == 1 && (p->kept.full || unread_bytes(p)))
        fault_line(p, "it has answered before it read all of its input: ", line, len);
    else if (!answer_line(j, c->json, line, len, whole, true, &v)) {
        for (uint32_t i = 0; !why && i < j->order.count; i++)
            why = answer_fault(j, i);
        if (why)
            fault(p, 0, why);
        else
            fault_line(p, "it has answered twice: ", line, len);
    } else if (j->order.count > 1) {
        reply_verdict(c->out, j, &v);
    } else { /* its output has to be read first */
        j->answered = true;
        j->answer = v;
        j->answer.error = mem_strdup(v.error);
    }
}

void keep_line(struct process *p, struct process_context *c, const char *line, size_t len,
               bool whole)
{
    if (!len || p->fault)
        return;
    if (p->job && p->job->open)
        take_answer(p, c, line, len, whole);
    else if (p->kept.ready)
        fault_line(p, "it has answered without a task: ", line, len);
    else if (whole && is_ready_line(c->json, line, len))
        become_ready(p);
    else
        fault_line(p, "it has not said {\"ready\":true}, but: ", line, len);
}

void keep_deaf(struct process *p)
{
    if (p->streams[PROCESS_IN].fd >= 0)
        fault_closed(p, "it has closed DQ_REPLY_FD");
}

void keep_spare(struct process *p, const char *line, size_t len)
{
    MEM_LOCAL char *text = mem_dup(line, len);
    const char *name = p->launch.plan->handler->name;

    log_fold(when_steady_us(), LOG_INFO, "a handler has written between its tasks", name, NULL,
             "handler=%s pid=%d text=%s", log_quote(name), (int)p->pid, log_quote(text));
}

bool keep_has_answered(const struct process *p)
{
    return p->job && !p->job->open;
}

/* ---- its end */

/* Whether its fault, and not its wait status, says why it has ended. */
static bool has_said(const struct process *p)
{
    return p->fault && (p->stop == PROCESS_AT_FAULT || !p->kept.closed);
}

static void explain_end(struct process *p, int status, const char *when, struct err *e)
{
    struct capture *tail = p->job ? &p->job->tail : &p->spare;
    char after[WHEN_TEXT_SIZE];

    if (has_said(p))
        reply_explain(tail, e, "%s", p->fault);
    else if (p->stop == PROCESS_NOT_READY)
        reply_explain(tail, e, "it was not ready after %s",
                      when_format_duration(after, p->launch.plan->handler->start_timeout_ms));
    else if (WIFSIGNALED(status))
        reply_explain(tail, e, "signal %d (%s)%s", WTERMSIG(status), strsignal(WTERMSIG(status)),
                      when);
    else
        reply_explain(tail, e, "exit status %d%s", WEXITSTATUS(status), when);
}

void keep_ended(struct process *p, int status)
{
    const bool asked = p->streams[PROCESS_IN].fd < 0, by_itself = p->stop == PROCESS_RUNS;
    const bool unread = !p->job || (p->job->open && keep_unread(p)); /* no attempt says why */
    struct plan *plan = p->launch.plan;
    const char *name = plan->handler->name;
    struct err e = {0};

    keep_leave(p);
    plan->kept.retired -= asked;
    p->kept.done += keep_has_answered(p);
    if (status < 0 || asked || (!by_itself && !has_said(p) && p->stop != PROCESS_NOT_READY))
        return;
    explain_end(p, status,
                !p->kept.ready           ? " before it was ready"
                : p->job && p->job->open ? " before it answered"
                                         : "",
                &e);
    note_replaced(plan, MESSAGE_KEPT_ENDED, e.text);
    if (!p->kept.ready || (unread && !p->kept.done && ++plan->kept.ends == ENDS_MOST))
        keep_refuse(plan, e.text);
    if (unread)
        log_fold(when_steady_us(), LOG_WARN, "a process that stays has ended", name, e.text,
                 "handler=%s pid=%d error=%s", log_quote(name), (int)p->pid, log_quote(e.text));
    /* an exit status of 0 would count as done */
    if (p->job && p->job->open && (has_said(p) || (by_itself && status == 0))) {
        p->stop = PROCESS_AT_FAULT;
        free(p->fault);
        p->fault = mem_strdup(e.text);
    }
}

bool keep_can_wait(const struct process *p)
{
    return p->launch.slow && p->launch.plan->kept.live;
}

static struct process_kept *kept_of(const struct jobs *jobs, pid_t session)
{
    struct process *p = jobs_led_by(jobs, session);

    return p && keep_is(p) ? &p->kept : NULL;
}

static bool is_kept(void *ctx, pid_t session)
{
    return kept_of(ctx, session);
}

static void weigh(void *ctx, pid_t session, int64_t bytes)
{
    struct process_kept *k = kept_of(ctx, session);

    if (k)
        k->memory += bytes;
}

bool keep_tell(struct table *t, struct jobs *jobs, struct proto_out *out)
{
    bool live = false;

    for (size_t n = 0; n < jobs->running_count; n++)
        jobs->running[n]->kept.memory = 0;
    session_weigh(is_kept, weigh, jobs);

    for (size_t i = 0; i < t->handlers->count; i++) {
        const struct plan *plan = &t->plans[i];
        struct plan_kept *k = &t->plans[i].kept;
        struct message m = {.type = MESSAGE_KEPT, .kept = k->tell};

        if (!k->live && !k->tell.last && !k->told)
            continue;
        k->told = k->live; /* a last report says 0 */
        m.kept.handler = (uint32_t)i;
        for (size_t n = 0; n < jobs->running_count; n++) {
            const struct process *p = jobs->running[n];
            if (p->launch.plan != plan || !p->pid)
                continue;
            m.kept.busy += !!p->job;
            m.kept.idle += p->kept.idle;
            m.kept.memory += (uint64_t)p->kept.memory;
        }
        message_put(out, &m);
        live |= k->live != 0;
    }
    return live;
}
