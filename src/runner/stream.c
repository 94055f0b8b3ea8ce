/*
 * stream.c - opens, reads and closes the pipes that handlers write to.
 *
 * Invariant: a stream is watched exactly while it is open and not paused, so that no event comes
 * for a job that may be gone.
 */
#include "runner/stream.h"

#include "runner/answer.h"
#include "runner/keep.h"
#include "runner/reply.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/param.h>
#include <unistd.h>

#define READ_MAX (64 * 1024) /* at a time; a pipe's usual capacity */

static int watch(struct process_stream *s, struct process_context *c)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = s};

    return epoll_ctl(c->epoll, EPOLL_CTL_ADD, s->fd, &ev);
}

int stream_open(struct process_stream *s, struct process_context *c, int *ret_end, struct err *err)
{
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) != 0)
        return err_set(err, err_system(errno), "pipe: %s", strerror(errno));
    s->fd = fds[0];
    *ret_end = fds[1];
    if (fcntl(fds[0], F_SETFL, O_NONBLOCK) != 0 || watch(s, c) != 0)
        return err_set(err, err_system(errno), "pipe: %s", strerror(errno));
    return 0;
}

/* Closing alone would not do: a child that is just about to execute its program still has the
 * descriptor, and until it has closed that, events go on. */
static void close_stream(struct process_stream *s, struct process_context *c)
{
    if (s->fd < 0)
        return;
    epoll_ctl(c->epoll, EPOLL_CTL_DEL, s->fd, NULL);
    close(s->fd);
    s->fd = -1;
}

void stream_close(struct process *p, struct process_context *c)
{
    for (int i = 0; i < PROCESS_STREAMS; i++)
        close_stream(&p->streams[i], c);
}

/* A full pipe makes the handler wait; its end would be reported again and again. */
static void pause_stream(struct process_stream *s, struct process_context *c)
{
    epoll_ctl(c->epoll, EPOLL_CTL_DEL, s->fd, NULL);
    s->paused = true;
}

void stream_resume(struct process_stream *s, struct process_context *c)
{
    if (!s->paused || s->fd < 0)
        return;
    s->paused = false;
    if (watch(s, c) != 0)
        close_stream(s, c);
}

struct line_context {
    struct process_stream *stream;
    struct process_context *c;
};

static void take_line(void *ctx, const char *line, size_t len, bool whole)
{
    struct line_context *x = ctx;
    struct process *p = x->stream->process;
    struct job *j = p->job;
    bool reply = x->stream == &p->streams[PROCESS_REPLY];
    struct verdict v;

    if (p->launch.plan->contract->stays)
        keep_line(p, x->c, line, len, whole);
    else if (answer_line(j, x->c->json, line, len, whole, reply, &v))
        reply_verdict(x->c->out, j, &v);
}

static void take_spare(void *ctx, const char *line, size_t len, bool whole)
{
    struct line_context *x = ctx;

    (void)whole;
    keep_spare(x->stream->process, line, len);
}

static void keep(struct line_context *x, const char *p, size_t len)
{
    struct job *j = x->stream->process->job;

    if (!j) {
        capture_add(&x->stream->process->spare, p, len);
        lines_add(&x->stream->lines, p, len, take_spare, x);
        return;
    }
    capture_add(&j->tail, p, len);
    if (j->followed)
        capture_add(&j->fresh, p, len);
}

/* How much can be read without losing anything that has to be kept. */
static size_t room(const struct process_stream *s)
{
    const struct job *j = s->process->job;

    return j && j->whole && !s->answers ? j->fresh.limit - j->fresh.len : SIZE_MAX;
}

void stream_read(struct process_stream *s, struct process_context *c, size_t max)
{
    static char data[READ_MAX];
    struct line_context x = {s, c};
    struct process *p = s->process;

    if (s == &p->streams[PROCESS_IN]) {
        keep_feed(p, c);
        return;
    }
    /* whether stdout has verdicts depends on what was written there before */
    if (s->answers && s != &p->streams[PROCESS_REPLY])
        stream_read(&p->streams[PROCESS_REPLY], c, max);
    for (size_t done = 0; done < max && s->fd >= 0;) {
        size_t size = MIN(sizeof data, room(s));
        if (!size) {
            pause_stream(s, c);
            return;
        }
        ssize_t n = read(s->fd, data, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0) {
            close_stream(s, c);
            if (p->launch.plan->contract->stays && s == &p->streams[PROCESS_REPLY])
                keep_deaf(p);
            return;
        }
        if (s->answers)
            lines_add(&s->lines, data, (size_t)n, take_line, &x);
        else
            keep(&x, data, (size_t)n);
        if ((size_t)n < size)
            return; /* it is empty for now, or at its end: the next event will show */
        done += (size_t)n;
    }
}

void stream_finish(struct process_stream *s, struct process_context *c)
{
    if (s->answers)
        lines_finish(&s->lines, take_line, &(struct line_context){s, c});
}
