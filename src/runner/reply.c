/*
 * reply.c - what the runner tells the poller about jobs.
 *
 * Invariant: OUTPUT messages of a job are followed by its RESULT and ENDED messages with nothing of
 * another job in between.
 */
#include "runner/reply.h"

#include "base/task.h"
#include "base/when.h"
#include "runner/answer.h"

#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/wait.h>

#define RESULT_ROOM 64 /* without the error's text */

struct result {
    enum task_outcome outcome;
    bool permanent;
    bool with_output;
    int64_t retry_after_ms;
    int exit_code, signal;
    int64_t finish_us;
    const char *error;
};

static void put_result(struct proto_out *o, uint32_t job, uint64_t id, const struct result *r)
{
    proto_begin(o, PROTO_RESULT, RESULT_ROOM + PROTO_TEXT_ROOM(r->error ? strlen(r->error) : 0),
                -1);
    proto_put_u32(o, job);
    proto_put_u64(o, id);
    proto_put_u32(o, (uint32_t)r->outcome);
    proto_put_u32(o, r->permanent);
    proto_put_u32(o, r->with_output);
    proto_put_i64(o, r->retry_after_ms);
    proto_put_u32(o, (uint32_t)r->exit_code);
    proto_put_u32(o, (uint32_t)r->signal);
    proto_put_i64(o, r->finish_us);
    proto_put_text(o, r->error);
    proto_end(o);
}

void reply_started(struct proto_out *o, const struct job *j, int64_t at_us)
{
    proto_begin(o, PROTO_STARTED, 16, -1);
    proto_put_u32(o, j->number);
    proto_put_u32(o, (uint32_t)j->pid);
    proto_put_i64(o, at_us);
    proto_end(o);
}

void reply_verdict(struct proto_out *o, const struct job *j, const struct verdict *v)
{
    const struct result r = {
        .outcome = v->result == VERDICT_DONE ? OUTCOME_DONE : OUTCOME_VERDICT,
        .permanent = v->result == VERDICT_FAIL,
        .retry_after_ms = v->after_ms,
        .exit_code = -1,
        .finish_us = when_steady_us(),
        .error = v->result == VERDICT_DONE   ? NULL
                 : v->error                  ? v->error
                 : v->result == VERDICT_FAIL ? "the handler said fail"
                                             : "the handler said retry",
    };

    put_result(o, j->number, v->id, &r);
}

static void put_output(struct proto_out *o, struct job *j)
{
    size_t len;
    const char *p = capture_tail(&j->tail, &len);

    while (len) {
        size_t n = len < PROTO_CHUNK_MAX ? len : PROTO_CHUNK_MAX;
        proto_begin(o, PROTO_OUTPUT, 8 + n, -1);
        proto_put_u32(o, j->number);
        proto_put_bytes(o, p, n);
        proto_end(o);
        p += n;
        len -= n;
    }
}

static void explain_timeout(const struct job *j, struct err *e)
{
    char after[WHEN_TEXT_SIZE], grace[WHEN_TEXT_SIZE];

    when_format_duration(after, j->plan->handler->timeout_ms);
    when_format_duration(grace, j->plan->handler->kill_grace_ms);
    if (j->killed)
        err_set(e, ERR_STATE, "timed out after %s (TERM, then KILL after %s)", after, grace);
    else
        err_set(e, ERR_STATE, "timed out after %s (TERM)", after);
}

/* What the process's end means for a task that has no verdict. e holds the text. */
static void judge(const struct job *j, int status, struct result *r, struct err *e)
{
    static const char *const why[] = {
        [JOB_LEASE_ENDS] = "the lease could not be renewed",
        [JOB_CANCELLED] = "cancelled while it ran",
        [JOB_LOST] = "the task was taken back from this dqd",
        [JOB_SHUT_DOWN] = "dqd was shut down",
        [JOB_START_HANGS] = "its start hung",
    };

    r->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    r->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    r->error = e->text;
    if (j->stop == JOB_TIMED_OUT) {
        r->outcome = OUTCOME_TIMEOUT;
        explain_timeout(j, e);
    } else if (j->stop != JOB_RUNS) {
        r->outcome = j->stop == JOB_CANCELLED ? OUTCOME_CANCELLED : OUTCOME_KILLED;
        r->error = why[j->stop];
    } else if (r->signal) {
        r->outcome = OUTCOME_SIGNAL;
        err_set(e, ERR_STATE, "signal %d (%s%s)", r->signal, strsignal(r->signal),
                WCOREDUMP(status) ? ", core dumped" : "");
    } else if (r->exit_code) {
        r->outcome = OUTCOME_EXIT;
        r->permanent = j->plan->handler->permanent_exit[r->exit_code];
        err_set(e, ERR_STATE, "exit status %d", r->exit_code);
    } else {
        r->outcome = OUTCOME_DONE;
        r->error = NULL;
    }
}

/* The result of a task that got no verdict: the process's, unless that would be done and the
 * handler may have meant otherwise. */
static void put_rest(struct proto_out *o, const struct job *j, uint32_t i, const struct result *r)
{
    struct result doubted = *r;

    if (r->outcome == OUTCOME_DONE && answer_fault(j, i)) {
        doubted.outcome = OUTCOME_VERDICT;
        doubted.exit_code = -1;
        doubted.error = answer_fault(j, i);
        r = &doubted;
    }
    put_result(o, j->number, j->ids[i], r);
}

void reply_ended(struct proto_out *o, struct job *j, int status)
{
    struct result r = {.retry_after_ms = -1, .finish_us = when_steady_us(), .with_output = true};
    struct err e = {0};

    if (j->open) {
        judge(j, status, &r, &e);
        put_output(o, j);
    }
    for (uint32_t i = 0; i < j->count; i++)
        if (!j->reported[i])
            put_rest(o, j, i, &r);
    j->open = 0;
    proto_begin(o, PROTO_ENDED, 4, -1);
    proto_put_u32(o, j->number);
    proto_end(o);
}

void reply_returned(struct proto_out *o, const struct job *j, bool cannot_start, const char *why)
{
    proto_begin(o, PROTO_RETURNED, 8 + PROTO_TEXT_ROOM(why ? strlen(why) : 0), -1);
    proto_put_u32(o, j->number);
    proto_put_u32(o, cannot_start);
    proto_put_text(o, why);
    proto_end(o);
}
