/*
 * job.c - a job's life: start, deadlines, output, end.
 *
 * Invariants: KILL is sent before the deadline, whatever else happens; every task of a started job
 * gets exactly one result, or the job as a whole is returned; a job ends when the leader of its
 * session does, and nothing of the session outlives it.
 *
 * A background process that stays in the session is killed at that moment, output it has not
 * written by then is lost. One that has made a session of its own (setsid) goes on and is nobody's:
 * if it holds the handler's stdout, its writes fail.
 */
#include "runner/job.h"

#include "base/mem.h"
#include "base/task.h"
#include "base/when.h"
#include "runner/answer.h"
#include "runner/process.h"
#include "runner/reply.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/param.h>
#include <sys/wait.h>
#include <unistd.h>

#define READ_MAX (64 * 1024)       /* at a time; a pipe's usual capacity */
#define LAST_READ_MAX (256 * 1024) /* once the leader has ended: others may still write */
#define LAST_LINE_MAX 160
#define START_MAX_MS 10000 /* until a program is executed: an automatic mount takes seconds */
/* for one that was killed before that; afterwards it is stuck in the kernel and will execute
 * nothing */
#define DROP_WAIT_MS 1000
#define DROP_LOOK_MS 20

struct job *job_new(uint32_t number, const struct message_job *m, int64_t now)
{
    struct job *j = mem_zero(1, sizeof *j);

    j->number = number;
    j->digest = m->digest;
    j->handler = m->handler;
    j->start_us = m->start_us;
    j->vouched_us = m->vouched_us;
    job_set_deadline(j, m->deadline_at, now);
    j->stdin_fd = MAX(m->stdin_fd, -1);
    j->stdin_lost = m->stdin_fd == PROTO_FD_LOST;
    j->tag = mem_strdup(m->tag);
    j->key = mem_strdup(m->key);
    j->attempt = m->attempt;
    j->max_attempts = m->max_attempts;
    j->expected_at = m->expected_at;
    j->token = m->token;
    j->ids = mem_dup(m->ids, m->count * sizeof *j->ids);
    j->count = j->open = m->count;
    j->reported = mem_zero(j->count, sizeof *j->reported);
    for (int i = 0; i < 2; i++)
        j->streams[i] = (struct job_stream){.job = j, .fd = -1};
    return j;
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void job_free(struct job *j)
{
    if (!j)
        return;
    close_fd(&j->stdin_fd);
    capture_done(&j->tail);
    lines_done(&j->lines);
    answer_done(j);
    free(j->tag);
    free(j->key);
    free(j->ids);
    free(j->reported);
    free(j);
}

bool job_is_batch(const struct job *j)
{
    return j->plan->handler->batch > 1;
}

/* Closing alone would not do: a child that is just about to execute its program still has the
 * descriptor, and as long as it has, there are events for a job that may be gone. */
static void close_stream(struct job_stream *s, struct job_context *c)
{
    if (s->fd >= 0)
        epoll_ctl(c->epoll, EPOLL_CTL_DEL, s->fd, NULL);
    close_fd(&s->fd);
}

/* A pipe whose reading end is watched; the writing end blocks, as programs expect. */
static int open_stream(struct job_stream *s, struct job_context *c, int *ret_end, struct err *err)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = s};
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) != 0)
        return err_set(err, ERR_SYSTEM, "pipe: %s", strerror(errno));
    s->fd = fds[0];
    *ret_end = fds[1];
    if (fcntl(fds[0], F_SETFL, O_NONBLOCK) != 0 ||
        epoll_ctl(c->epoll, EPOLL_CTL_ADD, fds[0], &ev) != 0)
        return err_set(err, ERR_SYSTEM, "pipe: %s", strerror(errno));
    return 0;
}

static struct launch *launch_new(struct job *j, volatile pid_t *note)
{
    struct launch *a = mem_zero(1, sizeof *a);

    a->job = j;
    a->table = j->table;
    a->table->users++;
    a->plan = &j->table->plans[j->handler];
    a->setup = a->plan->setup;
    a->in = j->stdin_fd;
    a->out = a->err = -1;
    a->note = note ? note : &a->own_note;
    *a->note = PROCESS_STARTS;
    return a;
}

void job_launch_free(struct launch *a)
{
    struct plan *p = a->plan;

    if (a->slow)
        (*(a->given_up ? &p->given_up : &p->hanging))--;
    if (p->setup)
        setup_free(a->fresh);
    else
        p->setup = a->fresh;
    close_fd(&a->in);
    if (a->err != a->out)
        close_fd(&a->err);
    close_fd(&a->out);
    a->table->users--;
    free(a);
}

int job_start(struct job *j, struct job_context *c, volatile pid_t *note, struct err *err)
{
    int rc;

    if (j->plan->given_up)
        return err_set(err, ERR_SYSTEM, "an earlier start still hangs");
    if (j->stdin_lost)
        return err_set(err, ERR_SYSTEM, "stdin: %s", strerror(EMFILE));
    struct launch *a = launch_new(j, note);
    capture_init(&j->tail, j->plan->handler->output_limit);
    j->streams[0].verdicts = job_is_batch(j);
    rc = open_stream(&j->streams[0], c, &a->out, err);
    a->err = a->out;
    if (!rc && job_is_batch(j))
        rc = open_stream(&j->streams[1], c, &a->err, err);
    if (rc) {
        *a->note = 0;
        job_launch_free(a);
        return rc;
    }
    j->stdin_fd = -1;
    j->launch = a;
    j->note = a->note;
    return 0;
}

int job_launched(struct job *j, pid_t *ret_pid, struct err *err)
{
    struct launch *a = j->launch;
    int rc = a->failure.code;

    j->launch = NULL;
    if (rc) {
        *err = a->failure;
    } else {
        *ret_pid = a->pid;
        j->start_at = a->start_us / 1000;
        j->unsure = a->given_up;
        if (a->note == &a->own_note)
            j->note = NULL;
        j->begun_us = a->start_us;
    }
    job_launch_free(a);
    return rc;
}

/* ---- deadlines */

void job_set_deadline(struct job *j, int64_t deadline_at, int64_t now)
{
    if (deadline_at <= j->deadline_at)
        return;
    j->deadline_at = deadline_at;
    j->lease_ms = deadline_at > now ? deadline_at - now : 0;
}

/* KILL is sent a margin before the deadline, TERM a grace before that; both are small against a
 * short lease. */
static int64_t lease_kill_at(const struct job *j)
{
    int64_t margin = j->lease_ms / 20;

    return j->deadline_at - (margin < 200 ? margin : 200);
}

static int64_t lease_term_at(const struct job *j)
{
    int64_t grace = j->plan->handler->kill_grace_ms;

    return lease_kill_at(j) - (grace < j->lease_ms / 4 ? grace : j->lease_ms / 4);
}

int64_t job_late_at(const struct job *j)
{
    return lease_term_at(j);
}

void job_stop(struct job *j, enum job_stop why, int64_t now)
{
    if (j->stop != JOB_RUNS || (j->pid && child_has_ended(j->pid)))
        return;
    j->stop = why;
    j->stop_at = now;
    if (j->pid)
        child_signal(j->pid, SIGTERM);
}

int64_t job_watch(struct job *j, int64_t now)
{
    int64_t lease_at = lease_term_at(j), timeout_at = j->start_at + j->plan->handler->timeout_ms;
    int64_t stop_at = MIN(lease_at, timeout_at);

    if (j->stop == JOB_RUNS) {
        if (now < stop_at)
            return stop_at;
        job_stop(j, lease_at < timeout_at ? JOB_LEASE_ENDS : JOB_TIMED_OUT, now);
        if (j->stop == JOB_RUNS)
            return JOB_NEVER;
    }
    if (j->killed)
        return JOB_NEVER;
    int64_t grace_at = j->stop_at + j->plan->handler->kill_grace_ms, kill_at = lease_kill_at(j);
    if (grace_at < kill_at)
        kill_at = grace_at;
    if (now < kill_at)
        return kill_at;
    j->killed = true;
    child_signal(j->pid, SIGKILL);
    return JOB_NEVER;
}

static void explain_hang(const struct job *j, bool looked_up, struct err *err)
{
    const struct handler *h = j->plan->handler;
    char after[WHEN_TEXT_SIZE];

    when_format_duration(after, START_MAX_MS);
    if (looked_up)
        err_set(
            err, ERR_SYSTEM,
            "the start of %s hangs, given up after %s: does the file system of the program and of cwd answer?",
            j->plan->argv[0], after);
    else
        err_set(err, ERR_SYSTEM, "user %s: the account database has not answered for %s",
                h->user ? h->user : "of dqd", after);
}

bool job_watch_launch(struct job *j, int64_t now, int64_t *ret_next, struct err *err)
{
    struct launch *a = j->launch;
    int64_t limit_at = a->begun_at + START_MAX_MS, kill_at = lease_kill_at(j);

    if (j->stop != JOB_RUNS && j->stop_at + j->plan->handler->kill_grace_ms < kill_at)
        kill_at = j->stop_at + j->plan->handler->kill_grace_ms;
    *ret_next = MIN(limit_at, kill_at);
    if (now < *ret_next)
        return false;
    if (!a->given_up) {
        j->dropped_at = now;
        job_stop(j, limit_at < kill_at ? JOB_START_HANGS : JOB_LEASE_ENDS, now);
    }
    bool begun = !launch_drop(a);
    if (begun && (*a->note <= 0 || now - j->dropped_at < DROP_WAIT_MS)) {
        *ret_next = now + DROP_LOOK_MS;
        return false;
    }
    if (j->stop == JOB_START_HANGS)
        explain_hang(j, begun, err);
    a->job = NULL;
    j->launch = NULL;
    return true;
}

/* ---- output */

struct line_context {
    struct job *job;
    struct job_context *c;
};

static void take_line(void *ctx, const char *line, size_t len, bool whole)
{
    struct line_context *x = ctx;

    answer_line(x->job, x->c, line, len, whole);
}

void job_read(struct job_stream *s, struct job_context *c, size_t max)
{
    static char data[READ_MAX];
    struct line_context x = {s->job, c};

    for (size_t done = 0; done < max && s->fd >= 0;) {
        ssize_t n = read(s->fd, data, sizeof data);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0) {
            close_stream(s, c);
            return;
        }
        if (s->verdicts)
            lines_add(&s->job->lines, data, (size_t)n, take_line, &x);
        else
            capture_add(&s->job->tail, data, (size_t)n);
        if ((size_t)n < sizeof data)
            return; /* it is empty for now, or at its end: the loop will tell */
        done += (size_t)n;
    }
}

/* ---- end */

/* The last line that is not empty, for messages. */
static void last_line(struct job *j, char out[LAST_LINE_MAX])
{
    size_t len;
    const char *p = capture_tail(&j->tail, &len);

    while (len && strchr("\r\n\t ", p[len - 1]))
        len--;
    size_t start = len;
    while (start && p[start - 1] != '\n' && p[start - 1] != 0)
        start--;
    len -= start;
    if (len >= LAST_LINE_MAX)
        len = LAST_LINE_MAX - 1;
    memcpy(out, p + start, len);
    out[len] = 0;
}

static void return_unable(struct job *j, struct job_context *c, int status)
{
    char line[LAST_LINE_MAX];
    struct err e = {0};

    last_line(j, line);
    err_set(&e, ERR_SYSTEM, "exit status %d (%s)%s%s", status,
            status == 127 ? "not found" : "not executable", *line ? ": " : "", line);
    job_return(j, c, true, e.text);
}

/* The leader of a start that was given up. True: it has executed nothing, the job is returned. */
static bool was_no_start(struct job *j, struct job_context *c)
{
    struct err why = {0};

    if (!j->unsure)
        return false;
    if (!child_never_executed(j->pid)) {
        reply_started(c->out, j, j->begun_us);
        return false;
    }
    if (j->stop == JOB_START_HANGS)
        explain_hang(j, true, &why);
    child_reap(j->pid);
    job_return(j, c, why.code != 0, why.code ? why.text : NULL);
    return true;
}

void job_finish(struct job *j, struct job_context *c)
{
    struct line_context x = {j, c};

    if (j->note)
        *j->note = PROCESS_CLEARED;
    if (was_no_start(j, c))
        return;
    job_read(&j->streams[0], c, LAST_READ_MAX);
    job_read(&j->streams[1], c, LAST_READ_MAX);
    close_stream(&j->streams[0], c);
    close_stream(&j->streams[1], c);
    lines_finish(&j->lines, take_line, &x);
    int status = child_reap(j->pid), code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if ((code == 126 || code == 127) && j->stop == JOB_RUNS && j->open == j->count)
        return_unable(j, c, code);
    else
        reply_ended(c->out, j, status);
}

void job_return(struct job *j, struct job_context *c, bool cannot_start, const char *why)
{
    close_stream(&j->streams[0], c);
    close_stream(&j->streams[1], c);
    reply_returned(c->out, j, cannot_start, why);
}
