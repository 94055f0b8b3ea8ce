/*
 * job.c - a job's life: start, deadlines, output, end.
 *
 * Invariants: KILL is sent before the deadline, whatever else happens; every task of a started job gets exactly one result, or the
 * job as a whole is returned; a job ends when the leader of its group does, and nothing of the group outlives it.
 *
 * A background process that stays in the group is killed at that moment, output it has not written by then is lost. One that has
 * made a session of its own (setsid) goes on and is nobody's: if it holds the handler's stdout, its writes fail.
 */
#include "runner/job.h"

#include "base/mem.h"
#include "base/task.h"
#include "base/when.h"
#include "runner/answer.h"
#include "runner/reply.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#define READ_MAX (64 * 1024)       /* at a time; a pipe's usual capacity */
#define LAST_READ_MAX (256 * 1024) /* once the leader has ended: others may still write */
#define LAST_LINE_MAX 160

struct job *job_receive(struct proto_in *in, int64_t now)
{
    struct job *j = mem_zero(1, sizeof *j);
    size_t size;

    j->stdin_fd = -1;
    j->number = proto_get_u32(in);
    j->digest = proto_get_u64(in);
    j->handler = proto_get_u32(in);
    j->start_us = proto_get_i64(in);
    job_set_deadline(j, proto_get_i64(in), now);
    if (proto_get_u32(in)) {
        j->stdin_fd = proto_take_fd(in);
        j->stdin_lost = j->stdin_fd < 0;
    }
    j->tag = mem_strdup(proto_get_text(in, TASK_TAG_MAX * 4));
    j->key = mem_strdup(proto_get_text(in, TASK_KEY_MAX * 4));
    j->attempt = proto_get_u32(in);
    j->max_attempts = proto_get_u32(in);
    j->expected_at = proto_get_i64(in);
    j->token = proto_get_u64(in);
    const void *ids = proto_get_bytes(in, &size);
    if (in->bad || !j->tag || !size || size % sizeof *j->ids) {
        in->bad = true;
        job_free(j);
        return NULL;
    }
    j->ids = mem_dup(ids, size);
    j->count = j->open = (uint32_t)(size / sizeof *j->ids);
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

/* Closing alone would not do: a child that is just about to execute its program still has the descriptor, and as long as it has,
 * there are events for a job that may be gone. */
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
    if (fcntl(fds[0], F_SETFL, O_NONBLOCK) != 0 || epoll_ctl(c->epoll, EPOLL_CTL_ADD, fds[0], &ev) != 0)
        return err_set(err, ERR_SYSTEM, "pipe: %s", strerror(errno));
    return 0;
}

static int spawn(struct job *j, struct job_context *c, int out, int errfd, struct err *err)
{
    const struct handler *h = j->plan->handler;
    const struct child_spec spec = {
        .programs = j->plan->programs,
        .argv = (char *const *)j->plan->argv,
        .envp = job_env(j, c),
        .in = j->stdin_fd >= 0 ? j->stdin_fd : c->null_fd,
        .out = out,
        .err = errfd,
        .cwd = h->cwd ? h->cwd : "/",
        .account = j->plan->account,
        .umask = (mode_t)h->umask,
        .nice = c->nice + h->nice,
        .set_nice = h->nice != 0,
        .files = &c->files,
    };

    return child_start(&spec, &j->pid, err);
}

int job_start(struct job *j, struct job_context *c, struct err *err)
{
    int out = -1, errors = -1, rc;
    const int64_t start_us = when_steady_us();

    if (j->plan->trouble.code)
        return err_set(err, j->plan->trouble.code, "%s", j->plan->trouble.text);
    if (j->stdin_lost)
        return err_set(err, ERR_SYSTEM, "stdin: %s", strerror(EMFILE));
    capture_init(&j->tail, j->plan->handler->output_limit);
    j->streams[0].verdicts = job_is_batch(j);
    rc = open_stream(&j->streams[0], c, &out, err);
    if (!rc && job_is_batch(j))
        rc = open_stream(&j->streams[1], c, &errors, err);
    if (!rc)
        rc = spawn(j, c, out, job_is_batch(j) ? errors : out, err);
    close_fd(&out);
    close_fd(&errors);
    close_fd(&j->stdin_fd);
    if (rc) {
        close_stream(&j->streams[0], c);
        close_stream(&j->streams[1], c);
        return rc;
    }
    j->start_at = start_us / 1000;
    reply_started(c->out, j, start_us);
    return 0;
}

/* ---- deadlines */

void job_set_deadline(struct job *j, int64_t deadline_at, int64_t now)
{
    if (deadline_at <= j->deadline_at)
        return;
    j->deadline_at = deadline_at;
    j->lease_ms = deadline_at > now ? deadline_at - now : 0;
}

/* KILL is sent a margin before the deadline, TERM a grace before that; both are small against a short lease. */
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
    if (j->stop != JOB_RUNS || child_has_ended(j->pid))
        return;
    j->stop = why;
    j->stop_at = now;
    child_signal(j->pid, SIGTERM);
}

int64_t job_watch(struct job *j, int64_t now)
{
    int64_t lease_at = lease_term_at(j), timeout_at = j->start_at + j->plan->handler->timeout_ms;
    int64_t stop_at = lease_at < timeout_at ? lease_at : timeout_at;

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
    err_set(&e, ERR_SYSTEM, "exit status %d (%s)%s%s", status, status == 127 ? "not found" : "not executable", *line ? ": " : "",
            line);
    job_return(j, c, true, e.text);
}

void job_finish(struct job *j, struct job_context *c)
{
    struct line_context x = {j, c};

    child_signal(j->pid, SIGKILL);
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
    reply_returned(c->out, j, cannot_start, why);
}
