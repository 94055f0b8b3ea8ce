/*
 * link.c - the poller's side of the link to the runner.
 *
 * Invariants: nothing here blocks but runner_stop, and for at most 2 s the death of the runner;
 * what the runner says is checked as if it came from a stranger.
 */
#include "runner/runner.h"

#include "base/mem.h"
#include "base/when.h"
#include "runner/child.h"
#include "runner/process.h"
#include "runner/proto.h"
#include "runner/rights.h"
#include "runner/session.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define ERROR_MAX (32 * 1024)
#define OUTPUT_MAX (2 * 1024 * 1024)
#define JOB_ROOM 4096             /* of a job's message, without ids */
#define DEADLINES_MAX (16 * 1024) /* in one message */
#define NOTES_SIZE (PROCESS_NOTES_MAX * sizeof(pid_t))
#define BURY_MS 2000 /* until a process that was killed has ended */

struct runner_link {
    int fd; /* -1: closed */
    pid_t pid;
    bool gone;             /* and GONE was said */
    bool cleared;          /* after that: nothing of any handler is left */
    volatile pid_t *notes; /* shared with the runner: see process.h */
    struct proto_in in;
    struct proto_out out;
    struct buf output; /* of the job whose results are coming */
    int text;          /* of the last RELOADED; -1: none */
    pid_t *leaders;    /* of what a dead runner left behind */
    size_t leader_count;
};

int runner_start(const struct runner_options *o, struct runner_link **ret, struct err *err)
{
    int fds[2];
    void *notes = mmap(NULL, NOTES_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (notes == MAP_FAILED)
        return err_set(err, ERR_SYSTEM, "cannot start the runner: mmap: %s", strerror(errno));
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0) {
        err_set(err, ERR_SYSTEM, "cannot start the runner: socketpair: %s", strerror(errno));
        munmap(notes, NOTES_SIZE);
        return ERR_SYSTEM;
    }
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* what a runner that died leaves behind comes to us */
    pid_t pid = fork();
    if (pid < 0) {
        err_set(err, ERR_SYSTEM, "cannot start the runner: fork: %s", strerror(errno));
        close(fds[0]);
        close(fds[1]);
        munmap(notes, NOTES_SIZE);
        return ERR_SYSTEM;
    }
    if (pid == 0)
        runner_main(fds[1], o, notes);
    close(fds[1]);
    struct runner_link *l = mem_zero(1, sizeof *l);
    l->fd = fds[0];
    l->pid = pid;
    l->notes = notes;
    l->text = -1;
    proto_in_init(&l->in);
    *ret = l;
    return 0;
}

int runner_fd(const struct runner_link *l)
{
    return l->fd;
}

pid_t runner_pid(const struct runner_link *l)
{
    return l->pid;
}

bool runner_wants_write(const struct runner_link *l)
{
    return l->fd >= 0 && proto_pending(&l->out);
}

/* ---- sending */

int runner_flush(struct runner_link *l, struct err *err)
{
    int rc = l->fd < 0 ? -1 : proto_flush(&l->out, l->fd);

    return rc < 0 ? err_set(err, ERR_SYSTEM, "the runner is gone") : rc;
}

/* A full packet goes out at once if it can: its descriptors are not held for longer than needed. */
static void sent_one(struct runner_link *l)
{
    proto_end(&l->out);
    if (proto_full(&l->out) && runner_flush(l, NULL) < 0)
        proto_out_done(&l->out); /* runner_next says GONE */
}

void runner_send_job(struct runner_link *l, const struct runner_job *j)
{
    assert(j->count > 0 && j->count <= RUNNER_TASKS_MAX);
    if (j->job < PROCESS_NOTES_MAX)
        l->notes[j->job] = 0;
    proto_begin(&l->out, PROTO_JOB, JOB_ROOM + j->count * sizeof j->ids[0], j->stdin_fd);
    proto_put_u32(&l->out, j->job);
    proto_put_u64(&l->out, j->digest);
    proto_put_u32(&l->out, j->handler);
    proto_put_i64(&l->out, j->start_us);
    proto_put_i64(&l->out, j->vouched_us);
    proto_put_i64(&l->out, j->deadline_at);
    proto_put_u32(&l->out, j->stdin_fd >= 0);
    proto_put_text(&l->out, j->tag);
    proto_put_text(&l->out, j->key);
    proto_put_u32(&l->out, j->attempt);
    proto_put_u32(&l->out, j->max_attempts);
    proto_put_i64(&l->out, j->expected_at);
    proto_put_u64(&l->out, j->token);
    proto_put_bytes(&l->out, j->ids, j->count * sizeof j->ids[0]);
    sent_one(l);
}

void runner_send_deadline(struct runner_link *l, const uint32_t *jobs, size_t count,
                          int64_t deadline_at)
{
    while (count) {
        size_t n = count < DEADLINES_MAX ? count : DEADLINES_MAX;
        proto_begin(&l->out, PROTO_DEADLINE, 12 + n * sizeof jobs[0], -1);
        proto_put_i64(&l->out, deadline_at);
        proto_put_bytes(&l->out, jobs, n * sizeof jobs[0]);
        sent_one(l);
        jobs += n;
        count -= n;
    }
}

void runner_send_vouch(struct runner_link *l, int64_t until_us)
{
    proto_begin(&l->out, PROTO_VOUCH, 8, -1);
    proto_put_i64(&l->out, until_us);
    sent_one(l);
}

void runner_send_kill(struct runner_link *l, uint32_t job, enum runner_kill why)
{
    proto_begin(&l->out, PROTO_KILL, 8, -1);
    proto_put_u32(&l->out, job);
    proto_put_u32(&l->out, (uint32_t)why);
    sent_one(l);
}

void runner_send_return(struct runner_link *l)
{
    proto_begin(&l->out, PROTO_RETURN, 0, -1);
    sent_one(l);
}

void runner_send_reload(struct runner_link *l, uint64_t digest)
{
    proto_begin(&l->out, PROTO_RELOAD, 8, -1);
    proto_put_u64(&l->out, digest);
    sent_one(l);
}

void runner_send_ping(struct runner_link *l, uint64_t n)
{
    proto_begin(&l->out, PROTO_PING, 8, -1);
    proto_put_u64(&l->out, n);
    sent_one(l);
}

/* ---- receiving */

int runner_drop_root(const char *user, struct err *err)
{
    return rights_become(user, err);
}

bool runner_kill(struct runner_link *l)
{
    rights_raise();
    bool can = kill(l->pid, SIGKILL) == 0;
    rights_lower();
    return can;
}

static bool is_leader(void *ctx, pid_t session)
{
    const struct runner_link *l = ctx;

    for (size_t i = 0; i < l->leader_count; i++)
        if (l->leaders[i] == session)
            return true;
    return false;
}

/* Those that the runner did not reap. False: one of them is not our child, so that its number may
 * be another process's by now. */
static bool find_leaders(struct runner_link *l)
{
    bool ours = true;

    for (size_t i = 0; i < PROCESS_NOTES_MAX; i++) {
        siginfo_t si;
        if (l->notes[i] <= 0)
            continue;
        if (waitid(P_PID, (id_t)l->notes[i], &si, WEXITED | WNOHANG | WNOWAIT) != 0) {
            ours = false;
            continue;
        }
        l->leaders = mem_resize(l->leaders, l->leader_count + 1, sizeof *l->leaders);
        l->leaders[l->leader_count++] = l->notes[i];
    }
    return ours;
}

/* The runner is dead. Kills what it has left behind, and says whether nothing of that is left. */
static bool clear(struct runner_link *l)
{
    bool ours = find_leaders(l);

    rights_raise();
    for (size_t i = 0; i < l->leader_count; i++)
        child_signal(l->leaders[i], SIGKILL);
    enum session_left left = l->leader_count ? session_kill(is_leader, l, NULL) : SESSION_EMPTY;
    rights_lower();
    for (size_t i = 0; i < l->leader_count; i++)
        waitpid(l->leaders[i], NULL, WNOHANG);
    return ours && left == SESSION_EMPTY;
}

/* Whether it has ended within the time. */
static bool wait_for_end(pid_t pid)
{
    const int64_t until = when_steady() + BURY_MS;
    pid_t rc;

    while ((rc = waitpid(pid, NULL, WNOHANG)) == 0 && when_steady() < until)
        poll(NULL, 0, 1);
    return rc == pid;
}

/* The runner has died, or is not to be believed any more. Without the link it ends by itself if we
 * may not kill it. */
static void bury(struct runner_link *l)
{
    if (l->fd >= 0)
        close(l->fd);
    l->fd = -1;
    if (l->pid > 0)
        l->cleared = runner_kill(l) && wait_for_end(l->pid) && clear(l);
    l->pid = -1;
    proto_out_done(&l->out);
}

static void get_result(struct runner_link *l, struct runner_event *e)
{
    e->type = RUNNER_RESULT;
    e->job = proto_get_u32(&l->in);
    e->id = proto_get_u64(&l->in);
    uint32_t outcome = proto_get_u32(&l->in);
    e->permanent = proto_get_u32(&l->in) != 0;
    bool with_output = proto_get_u32(&l->in) != 0;
    e->retry_after_ms = proto_get_i64(&l->in);
    e->exit_code = (int)proto_get_u32(&l->in);
    e->signal = (int)proto_get_u32(&l->in);
    e->finish_us = proto_get_i64(&l->in);
    e->error = proto_get_text(&l->in, ERROR_MAX);
    if (outcome >= OUTCOME_COUNT || e->exit_code < -1 || e->exit_code > 255 || e->signal < 0 ||
        e->signal > 127 || e->retry_after_ms < -1)
        l->in.bad = true;
    e->outcome = (enum task_outcome)outcome;
    if (with_output && l->output.len) {
        e->output = l->output.data;
        e->output_size = l->output.len;
    }
}

static void get_output(struct runner_link *l)
{
    size_t len;

    proto_get_u32(&l->in);
    const void *p = proto_get_bytes(&l->in, &len);
    if (l->output.len + len > OUTPUT_MAX)
        l->in.bad = true;
    else
        buf_add(&l->output, p, len);
}

static void get_started(struct runner_link *l, struct runner_event *e)
{
    e->type = RUNNER_STARTED;
    e->job = proto_get_u32(&l->in);
    e->pid = (pid_t)proto_get_u32(&l->in);
    e->at_us = proto_get_i64(&l->in);
    if (e->pid <= 1)
        l->in.bad = true;
}

static void get_returned(struct runner_link *l, struct runner_event *e)
{
    e->type = RUNNER_RETURNED;
    e->job = proto_get_u32(&l->in);
    e->cannot_start = proto_get_u32(&l->in) != 0;
    e->error = proto_get_text(&l->in, ERROR_MAX);
}

static void drop_text(struct runner_link *l)
{
    if (l->text >= 0)
        close(l->text);
    l->text = -1;
}

static void get_reloaded(struct runner_link *l, struct runner_event *e)
{
    e->type = RUNNER_RELOADED;
    e->n = proto_get_u64(&l->in);
    e->text_fd = -1;
    if (proto_get_u32(&l->in))
        e->text_fd = l->text = proto_take_fd(&l->in);
    e->error = proto_get_text(&l->in, ERROR_MAX);
    if (e->text_fd < 0 && !e->error)
        e->error = "the text of the handlers file got lost (too many open files): send HUP again";
}

/* Reads the message. False: it makes no event. */
static bool get_event(struct runner_link *l, int type, struct runner_event *e)
{
    switch (type) {
    case PROTO_STARTED:
        get_started(l, e);
        break;
    case PROTO_OUTPUT:
        get_output(l);
        return false;
    case PROTO_RESULT:
        get_result(l, e);
        break;
    case PROTO_ENDED:
        e->type = RUNNER_ENDED;
        e->job = proto_get_u32(&l->in);
        buf_reset(&l->output);
        break;
    case PROTO_RETURNED:
        get_returned(l, e);
        break;
    case PROTO_RELOADED:
        get_reloaded(l, e);
        break;
    case PROTO_PONG:
        e->type = RUNNER_PONG;
        e->n = proto_get_u64(&l->in);
        break;
    default:
        l->in.bad = true;
    }
    return true;
}

bool runner_job_begun(const struct runner_link *l, uint32_t job)
{
    return job >= PROCESS_NOTES_MAX || l->notes[job];
}

int runner_next(struct runner_link *l, struct runner_event *ret)
{
    int rc = 1;

    if (l->gone)
        return 0;
    drop_text(l);
    if (l->fd < 0)
        rc = -1;
    for (;;) {
        struct runner_event e = {.retry_after_ms = -1, .exit_code = -1};
        int type = rc < 0 ? -1 : proto_next(&l->in);
        bool event = type > 0 && get_event(l, type, &e);
        if (type < 0 || l->in.bad) {
            bury(l);
            l->gone = true;
            *ret = (struct runner_event){.type = RUNNER_GONE};
            return 1;
        }
        if (event) {
            *ret = e;
            return 1;
        }
        if (type == 0 && (rc = proto_recv(&l->in, l->fd)) == 0)
            return 0;
    }
}

bool runner_cleared(const struct runner_link *l)
{
    return l->cleared;
}

void runner_give_up(struct runner_link *l)
{
    bury(l);
}

void runner_stop(struct runner_link *l, int64_t timeout_ms)
{
    const int64_t until = when_steady() + timeout_ms;

    if (!l)
        return;
    if (l->fd >= 0 && runner_flush(l, NULL) >= 0)
        shutdown(l->fd, SHUT_WR);
    while (l->fd >= 0) {
        struct pollfd p = {.fd = l->fd, .events = POLLIN};
        int64_t left = until - when_steady();
        if (left <= 0)
            break;
        if (poll(&p, 1, left < INT32_MAX ? (int)left : INT32_MAX) > 0 &&
            proto_recv(&l->in, l->fd) < 0)
            break; /* the end of its side: it has ended every handler */
    }
    bury(l);
    drop_text(l);
    proto_in_done(&l->in);
    buf_done(&l->output);
    free(l->leaders);
    munmap((void *)(uintptr_t)l->notes, NOTES_SIZE);
    free(l);
}
