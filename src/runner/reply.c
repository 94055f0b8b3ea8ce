/*
 * reply.c - composes the runner's reports.
 *
 * Invariant: between the OUTPUT messages of a job and its RESULT and ENDED messages there is none
 * of another job.
 */
#include "runner/reply.h"

#include "base/task.h"
#include "base/text.h"
#include "base/when.h"
#include "runner/answer.h"
#include "runner/message.h"

#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/param.h>
#include <sys/wait.h>

/* Bytes of output that an error quotes. */
#define QUOTED_MAX 200

void reply_explain(struct capture *tail, struct err *e, const char *fmt, ...)
{
    BUF_LOCAL struct buf text = BUF_INIT;
    va_list ap;
    size_t len, before;
    const char *output = capture_tail(tail, &len);

    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    buf_str(&text, ": ");
    before = text.len;
    text_last_line(&text, output, len, QUOTED_MAX);
    if (text.len == before)
        text.len -= 2;
    err_set(e, ERR_STATE, "%.*s", (int)text.len, text.data);
}

static void put_result(struct proto_out *o, uint32_t number, uint64_t id,
                       const struct message_result *r)
{
    struct message m = {.type = MESSAGE_RESULT, .number = number, .result = *r};

    m.result.id = id;
    message_put(o, &m);
}

static void put_ended(struct proto_out *o, uint32_t number, int64_t at_us)
{
    message_put(o, &(struct message){.type = MESSAGE_ENDED, .number = number, .ended = {at_us}});
}

void reply_started(struct proto_out *o, const struct process *p)
{
    message_put(o, &(struct message){.type = MESSAGE_STARTED,
                                     .number = p->job->number,
                                     .started = {p->pid, p->begun_us}});
}

/* What an answer means for its task. tail: where the reason is, if it has none of its own; NULL:
 * nowhere. text is empty, and must live as long as r. */
static void take_answer(const struct verdict *v, struct capture *tail, struct message_result *r,
                        struct buf *text)
{
    static const enum task_outcome outcomes[] = {
        [VERDICT_DONE] = OUTCOME_DONE,
        [VERDICT_RETRY] = OUTCOME_VERDICT,
        [VERDICT_FAIL] = OUTCOME_VERDICT,
        [VERDICT_SNOOZE] = OUTCOME_SNOOZED,
    };
    const char *why = v->error && *v->error ? v->error : NULL;
    char after[WHEN_TEXT_SIZE];
    size_t len;

    r->outcome = outcomes[v->result];
    r->permanent = v->result == VERDICT_FAIL;
    r->retry_after_ms = v->after_ms;
    r->hold_ms = v->hold_ms;
    r->error = NULL;
    if (v->result == VERDICT_DONE)
        return;
    if (v->after_ms >= 0)
        buf_printf(text, "%s %s: ",
                   v->result == VERDICT_SNOOZE ? TASK_SNOOZED_TEXT " for" : "asked to wait",
                   when_format_duration(after, MAX(v->after_ms, v->hold_ms)));
    else if (!why)
        buf_printf(text, "the handler said %s: ", r->permanent ? "fail" : "retry");
    size_t before = text->len;
    if (why) {
        buf_str(text, why);
    } else if (tail) {
        const char *output = capture_tail(tail, &len);
        text_last_line(text, output, len, QUOTED_MAX);
    }
    if (text->len == before && before)
        text->data[text->len -= 2] = '\0';
    r->error = text->data;
}

void reply_verdict(struct proto_out *o, const struct job *j, const struct verdict *v)
{
    struct message_result r = {.exit_code = -1, .finish_us = when_steady_us()};
    BUF_LOCAL struct buf text = BUF_INIT;

    take_answer(v, NULL, &r, &text);
    put_result(o, j->number, v->id, &r);
}

void reply_fresh(struct proto_out *o, struct job *j)
{
    size_t len;
    const char *p = capture_tail(&j->fresh, &len);

    do {
        size_t n = MIN(len, (size_t)MESSAGE_PIECE_MAX);
        message_put(o, &(struct message){.type = MESSAGE_CHUNK,
                                         .number = j->number,
                                         .chunk = {j->fresh.total - len, p, n, len > n}});
        p += n;
        len -= n;
    } while (len);
    capture_empty(&j->fresh);
}

static void put_output(struct proto_out *o, struct job *j)
{
    size_t len;
    const char *p = capture_tail(&j->tail, &len);

    while (len) {
        size_t n = MIN(len, (size_t)MESSAGE_PIECE_MAX);
        message_put(
            o, &(struct message){.type = MESSAGE_OUTPUT, .number = j->number, .output = {p, n}});
        p += n;
        len -= n;
    }
}

static void explain_timeout(const struct process *p, struct err *e)
{
    char after[WHEN_TEXT_SIZE], grace[WHEN_TEXT_SIZE];

    when_format_duration(after, p->job->plan->handler->timeout_ms);
    when_format_duration(grace, p->job->plan->handler->kill_grace_ms);
    if (p->killed)
        reply_explain(&p->job->tail, e, "timed out after %s (TERM, then KILL after %s)", after,
                      grace);
    else
        reply_explain(&p->job->tail, e, "timed out after %s (TERM)", after);
}

/* What the end of the process means for a task that has no verdict. e is where the text is kept.
 * What one task of several has done fails none of the others for good. */
static void judge(const struct process *p, int status, struct message_result *r, struct err *e)
{
    static const char *const why[] = {
        [PROCESS_LEASE_ENDS] = "the lease could not be renewed",
        [PROCESS_CANCELLED] = "cancelled while it ran",
        [PROCESS_LOST] = "the task was taken back from this dqd",
        [PROCESS_SHUT_DOWN] = "dqd was shut down",
        [PROCESS_START_HANGS] = "its start hung",
        [PROCESS_RETIRED] = "its process was replaced",
    };
    struct job *j = p->job;

    r->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    r->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    r->error = e->text;
    if (p->stop == PROCESS_TIMED_OUT) {
        r->outcome = OUTCOME_TIMEOUT;
        explain_timeout(p, e);
    } else if (p->stop == PROCESS_AT_FAULT) {
        r->outcome = OUTCOME_VERDICT;
        err_set(e, ERR_STATE, "%s", p->fault);
    } else if (p->stop != PROCESS_RUNS) {
        r->outcome = p->stop == PROCESS_CANCELLED ? OUTCOME_CANCELLED : OUTCOME_KILLED;
        r->error = why[p->stop];
    } else if (r->signal) {
        r->outcome = OUTCOME_SIGNAL;
        reply_explain(&j->tail, e, "signal %d (%s%s)", r->signal, strsignal(r->signal),
                      WCOREDUMP(status) ? ", core dumped" : "");
    } else if (r->exit_code) {
        r->outcome = OUTCOME_EXIT;
        r->permanent = j->order.count == 1 && j->plan->handler->permanent_exit[r->exit_code];
        reply_explain(&j->tail, e, "exit status %d", r->exit_code);
    } else {
        r->outcome = OUTCOME_DONE;
        r->error = NULL;
    }
}

/* The result of a task that has no verdict yet is that of the process, unless that has ended by
 * itself and its handler has said, or may have meant, something else. */
static void put_rest(struct proto_out *o, struct job *j, uint32_t i, const struct message_result *r)
{
    struct message_result said = *r;
    BUF_LOCAL struct buf text = BUF_INIT;
    bool exited =
        r->outcome == OUTCOME_DONE || (r->outcome == OUTCOME_EXIT && !j->plan->contract->verdicts);

    if (exited && j->answered) {
        take_answer(&j->answer, &j->tail, &said, &text);
    } else if (exited && answer_fault(j, i)) {
        said.outcome = OUTCOME_VERDICT;
        said.permanent = false;
        said.error = answer_fault(j, i);
    }
    put_result(o, j->number, j->ids[i], &said);
}

void reply_ended(struct proto_out *o, struct process *p, int status)
{
    struct job *j = p->job;
    struct message_result r = {
        .retry_after_ms = -1, .finish_us = when_steady_us(), .with_output = true};
    struct err e = {0};

    if (j->open) {
        judge(p, status, &r, &e);
        put_output(o, j);
    }
    for (uint32_t i = 0; i < j->order.count; i++)
        if (!j->reported[i])
            put_rest(o, j, i, &r);
    j->open = 0;
    put_ended(o, j->number, r.finish_us);
}

void reply_answered(struct proto_out *o, struct job *j)
{
    struct message_result r = {.exit_code = -1, .finish_us = when_steady_us(), .with_output = true};
    BUF_LOCAL struct buf text = BUF_INIT;

    if (j->answered) {
        put_output(o, j);
        take_answer(&j->answer, &j->tail, &r, &text);
        put_result(o, j->number, j->ids[0], &r);
    }
    put_ended(o, j->number, r.finish_us);
}

void reply_returned(struct proto_out *o, const struct job *j, int cannot_start, const char *why)
{
    message_put(o, &(struct message){.type = MESSAGE_RETURNED,
                                     .number = j->number,
                                     .returned = {cannot_start, why}});
}

void reply_reloaded(struct proto_out *o, uint64_t digest, int text_fd, const char *error)
{
    message_put(o,
                &(struct message){.type = MESSAGE_RELOADED, .reloaded = {digest, text_fd, error}});
}

void reply_pong(struct proto_out *o, uint64_t n)
{
    message_put(o, &(struct message){.type = MESSAGE_PONG, .pong = {n}});
}
