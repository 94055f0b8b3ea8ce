/*
 * start.c - prepares launches, and gives them up if they hang.
 *
 * Invariant: while a process is `launching`, its launch may be with another thread (launch.h).
 */
#include "runner/start.h"

#include "base/when.h"
#include "runner/child.h"
#include "runner/input.h"
#include "runner/notes.h"
#include "runner/stop.h"
#include "runner/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/param.h>
#include <sys/stat.h>
#include <unistd.h>

#define START_MAX_MS 10000 /* until a program is executed: an automatic mount takes seconds */
/* After KILL, before the program was executed. A process that is still there then is stuck in the
 * kernel and will execute nothing. */
#define DROP_WAIT_MS 1000
#define DROP_LOOK_MS 20
#define SPARE_MAX 2048 /* of what a process writes without a job */
#define HANGS "an earlier start still hangs"

static int open_streams(struct process *p, struct process_context *c, struct err *err)
{
    int rc = stream_open(&p->streams[PROCESS_OUT], c, &p->launch.out, err);

    p->launch.err = p->launch.out;
    if (!rc && p->streams[PROCESS_OUT].answers)
        rc = stream_open(&p->streams[PROCESS_ERR], c, &p->launch.err, err);
    if (!rc)
        rc = stream_open(&p->streams[PROCESS_REPLY], c, &p->launch.reply, err);
    if (rc) {
        *p->launch.note = 0;
        stream_close(p, c);
        process_free(p);
    }
    return rc;
}

/* A waiting job has no descriptor, unless its input is long: each would be copied to each process
 * that is started. */
static int open_input(struct job *j, int *ret, struct err *err)
{
    const struct message_job *o = &j->order;
    int fd = o->input_size ? input_memory("dq-body", o->input, o->input_size) : o->stdin_fd;

    if (fd == PROTO_FD_LOST)
        errno = EMFILE;
    if (fd == PROTO_FD_LOST || (fd < 0 && o->input_size))
        return err_set(err, err_system(errno), "stdin: %s", strerror(errno));
    j->order.stdin_fd = -1;
    *ret = fd;
    return 0;
}

int start_job(struct job *j, struct process_context *c, volatile pid_t *note, struct err *err)
{
    int in = -1, rc;

    if (j->plan->given_up)
        return err_set(err, ERR_SYSTEM, HANGS);
    if ((rc = open_input(j, &in, err)) < 0)
        return rc;
    struct process *p = process_new(j->table, &j->table->plans[j->order.handler], note);
    process_join(p, j);
    p->launch.job = j;
    p->launch.in = in;
    capture_init(&j->tail, j->plan->handler->output_limit);
    return open_streams(p, c, err);
}

int start_ahead(struct table *t, struct plan *plan, struct process_context *c, volatile pid_t *note,
                struct process **ret, struct err *err)
{
    int fds[2], rc;

    if (plan->given_up)
        return err_set(err, ERR_SYSTEM, HANGS);
    if (pipe2(fds, O_CLOEXEC) != 0)
        return err_set(err, err_system(errno), "pipe: %s", strerror(errno));
    struct process *p = process_new(t, plan, note);
    p->launch.in = fds[0];
    p->streams[PROCESS_IN].fd = fds[1];
    fcntl(fds[1], F_SETFL, O_NONBLOCK);
    (void)fchmod(fds[0], 0644); /* another account may open /dev/stdin by that name */
    capture_init(&p->spare, SPARE_MAX);
    rc = open_streams(p, c, err);
    if (!rc)
        *ret = p;
    return rc;
}

static void explain_hang(const struct process *p, bool looked_up, struct err *err)
{
    const struct handler *h = p->launch.plan->handler;
    char after[WHEN_TEXT_SIZE];

    when_format_duration(after, START_MAX_MS);
    if (looked_up)
        err_set(err, ERR_SYSTEM,
                "starting %s has hung for %s: check the file systems of the program and of cwd",
                p->launch.plan->argv[0], after);
    else
        err_set(err, ERR_SYSTEM, "user %s: the account database has not answered for %s",
                h->user ? h->user : "of dqd", after);
}

bool start_watch(struct process *p, int64_t now, int64_t *ret_next, struct err *err)
{
    int64_t limit_at = p->launch.begun_at + START_MAX_MS, kill_at = process_lease_kill_at(p);

    if (p->stop != PROCESS_RUNS)
        kill_at = MIN(kill_at, p->stop_at + p->launch.plan->handler->kill_grace_ms);
    *ret_next = MIN(limit_at, kill_at);
    if (now < *ret_next)
        return false;
    if (!p->launch.given_up) {
        p->dropped_at = now;
        stop_process(p, limit_at < kill_at ? PROCESS_START_HANGS : PROCESS_LEASE_ENDS, now);
    }
    bool begun = !launch_drop(&p->launch);
    if (begun && (*p->launch.note <= 0 || now - p->dropped_at < DROP_WAIT_MS)) {
        *ret_next = now + DROP_LOOK_MS;
        return false;
    }
    if (p->stop == PROCESS_START_HANGS)
        explain_hang(p, begun, err);
    *p->launch.note = NOTES_CLEARED; /* the process executes nothing, and its pid may outlive it */
    return true;
}

bool start_was_none(const struct process *p, struct err *err)
{
    if (!child_never_executed(p->pid))
        return false;
    if (p->stop == PROCESS_START_HANGS)
        explain_hang(p, true, err);
    return true;
}
