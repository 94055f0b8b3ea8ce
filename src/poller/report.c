/*
 * report.c - what the runner reports, turned into settlements. Invariant: a report never frees a
 * job that still has an open task without settling that task.
 */
#include "poller/report.h"

#include "base/log.h"
#include "base/log_fold.h"
#include "base/mem.h"
#include "base/when.h"
#include "conf/handlers_load.h"
#include "poller/withdraw.h"
#include "runner/outcome.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <unistd.h>

static struct flight_task *find_task(struct flight_job *j, uint64_t id)
{
    for (uint32_t i = 0; i < j->count; i++) {
        uint32_t at = (j->cursor + i) % j->count;

        if (j->flight[at].id == id) {
            j->cursor = at + 1;
            return &j->flight[at];
        }
    }
    return NULL;
}

static void log_ended(const struct flight_job *j, const struct flight_task *t,
                      const struct settlement *s)
{
    enum task_status to = task_transition(s->event)->to;
    char took[WHEN_TEXT_SIZE];

    when_format_rough(took, s->finish_at - s->start_at);
    if (to == TASK_DONE)
        log_event(LOG_DEBUG, "task done", "id=%" PRIu64 " tag=%s attempt=%u took=%s", t->id,
                  log_quote(j->tag->name), t->attempt, took);
    else
        log_fold(when_steady_us(), LOG_INFO,
                 s->outcome == OUTCOME_SNOOZED ? "task snoozed" : "attempt failed", j->tag->name,
                 s->error, "id=%" PRIu64 " tag=%s attempt=%u outcome=%s took=%s then=%s error=%s",
                 t->id, log_quote(j->tag->name), t->attempt, task_outcome_name((int)s->outcome),
                 took, task_status_name((int)to), log_quote(s->error));
}

static void on_result(const struct context *ctx, struct flight *f, struct flight_job *j,
                      const struct message_result *e)
{
    struct flight_task *t = find_task(j, e->id);
    const bool by_process = e->with_output && e->outcome != OUTCOME_DONE; /* no own verdict */
    struct settlement s = {.fault = e->permanent || e->outcome == OUTCOME_KILLED ? FAULT_EXCUSED
                                    : by_process && j->blamed                    ? FAULT_SHARED
                                                                                 : FAULT_COUNTS,
                           .exit_code = e->exit_code,
                           .signal = e->signal,
                           .error = e->error,
                           .output = e->output,
                           .output_size = e->output_size};
    char took[WHEN_TEXT_SIZE], *over = NULL;

    if (!t || t->ended)
        return;
    s.start_at = MAX(dbclock_at(&ctx->clock, j->start_us), t->expected_at);
    s.finish_at = MAX(dbclock_at(&ctx->clock, e->finish_us), s.start_at);
    s.event = outcome_event(e, flight_handler(j), t->attempt, t->max_attempts, context_random(),
                            s.finish_at - t->first_at, &s.retry_delay_ms);
    if (e->retry_after_ms < 0)
        s.apart_ms = retry_apart_ms(&flight_handler(j)->retry, s.retry_delay_ms);
    s.outcome = outcome_recorded(e, s.event);
    if (s.outcome != e->outcome)
        s.error = over = mem_printf(OUTCOME_SNOOZE_OVER, e->error);
    /* no longer ours: it is recorded already, but for its output */
    if (t->lost || e->outcome == OUTCOME_CANCELLED) {
        settle_queue_output(f->results, &(struct claim_ref){t->id, t->version}, e->output,
                            e->output_size);
        log_fold(when_steady_us(), LOG_INFO,
                 "attempt ended, but its task was cancelled or taken back", j->tag->name, NULL,
                 "id=%" PRIu64 " tag=%s attempt=%u outcome=%s took=%s", t->id,
                 log_quote(j->tag->name), t->attempt, task_outcome_name((int)e->outcome),
                 when_format_rough(took, s.finish_at - s.start_at));
        flight_end_task(j, t);
    } else {
        const char *why = e->error ? strstr(e->error, ": ") : NULL;
        flight_settle_task(f, j, t, &s);
        if (e->hold_ms > 0) {
            if (!hold_has(f->results->holds, flight_limit(j)))
                withdraw_limit(ctx, f, flight_limit(j));
            hold_queue(f->results->holds, flight_limit(j), e->hold_ms, why ? why + 2 : NULL);
        }
        j->blamed |= by_process;
        log_ended(j, t, &s);
    }
    free(over);
}

/* A process goes on while it has other tasks than those that were cancelled. */
static void stop_if_only_lost(const struct context *ctx, struct flight_job *j)
{
    if (!j->lost || j->killed || !j->open)
        return;
    for (uint32_t k = 0; k < j->count; k++)
        if (!j->flight[k].ended && !j->flight[k].lost)
            return;
    j->killed = true;
    link_send_kill(ctx->link, j->number, MESSAGE_KILL_CANCELLED);
}

void report_job(const struct context *ctx, struct flight *f, const struct message *m)
{
    struct flight_job *j = flight_job(f, m->number);

    if (!j)
        return;
    switch (m->type) {
    case MESSAGE_STARTED:
        flight_started(f, j, m->started.at_us, m->started.pid);
        log_event(LOG_DEBUG, "handler started", "id=%" PRIu64 " tag=%s count=%u pid=%d",
                  j->flight[0].id, log_quote(j->tag->name), j->count, (int)m->started.pid);
        break;
    case MESSAGE_RESULT:
        on_result(ctx, f, j, &m->result);
        stop_if_only_lost(ctx, j);
        break;
    case MESSAGE_RETURNED:
        if (m->returned.cannot_start)
            tags_rest(j->tag, m->returned.cannot_start, m->returned.error);
        /* a shortage of the host may last: it is no news of each task */
        flight_give_back_job(f, j,
                             m->returned.cannot_start == ERR_TRANSIENT ? NULL : m->returned.error);
        break;
    case MESSAGE_ENDED:
        look_tag_took(&j->tag->look, MIN(m->ended.at_us, when_steady_us()) - j->start_us);
        flight_give_back_job(f, j, "the runner did not report how the handler ended");
        break;
    default:
        break;
    }
}

/* Parses the very text that the runner has read: both have the same table, however often the file
 * changes. */
static int load_text(const struct context *ctx, int fd, struct handlers **ret, struct err *err)
{
    MEM_LOCAL char *text = mem_alloc(HANDLERS_LOAD_TEXT_MAX + 1);
    size_t len = 0;
    ssize_t n = 0;
    int rc;

    while (len <= HANDLERS_LOAD_TEXT_MAX &&
           (n = pread(fd, text + len, HANDLERS_LOAD_TEXT_MAX + 1 - len, (off_t)len)) > 0)
        len += (size_t)n;
    rc = n < 0 ? err_set(err, ERR_SYSTEM, "cannot read the runner's copy: %s", strerror(errno))
               : handlers_load_again(ctx->conf->dqd.handlers, text, len, ret, err);
    return rc;
}

struct handlers *report_handlers(const struct context *ctx, const struct message_reloaded *e)
{
    struct handlers *fresh = NULL;
    struct err err = {0};

    if (e->error)
        err_set(&err, ERR_CONFIG, "%s", e->error);
    else if (load_text(ctx, e->text_fd, &fresh, &err) == 0 && fresh && fresh->digest != e->digest)
        err_set(&err, ERR_SYSTEM, "the runner's copy does not match its digest");
    if (err.code || !fresh) {
        log_event(LOG_ERROR, "handlers file not reloaded; the old handlers stay in effect",
                  "error=%s", log_quote(err.text));
        handlers_free(fresh);
        return NULL;
    }
    log_event(LOG_NOTE, "handlers reloaded", "file=%s handlers=%zu", log_quote(fresh->path),
              fresh->count);
    return fresh;
}

/* A handler was running, or may have been, when the runner died: that attempt counts. */
static void take_back_begun(const struct context *ctx, struct flight *f, struct flight_job *j)
{
    for (uint32_t i = 0; i < j->count; i++) {
        struct flight_task *t = &j->flight[i];
        struct settlement s = {.outcome = OUTCOME_RUNNER_DIED,
                               .fault = FAULT_EXCUSED,
                               .exit_code = -1,
                               .signal = SIGKILL};

        s.event = t->attempt >= t->max_attempts ||
                          flight_handler(j)->on_lease_expiry == HANDLER_EXPIRY_FAIL
                      ? TASK_GIVE_UP
                      : TASK_TAKE_BACK;
        s.start_at = MAX(dbclock_at(&ctx->clock, j->start_us ? j->start_us : when_steady_us()),
                         t->expected_at);
        s.finish_at = MAX(dbclock_at(&ctx->clock, when_steady_us()), s.start_at);
        s.error = "dqd's runner process died while the handler ran";
        flight_settle_task(f, j, t, &s);
    }
    flight_job_free(f, j);
}

/* Something of the handler may still run: no dqd has its task until the lease has ended. */
static void leave_to_lease(struct flight *f, struct flight_job *j)
{
    for (uint32_t i = 0; i < j->count; i++) {
        if (j->flight[i].ended || j->flight[i].lost)
            continue;
        log_fold(when_steady_us(), LOG_ERROR,
                 "a handler may still be running; its task runs again when its lease ends",
                 j->tag->name, NULL, "id=%" PRIu64 " tag=%s session=%d", j->flight[i].id,
                 log_quote(j->tag->name), (int)j->pid);
        flight_end_task(j, &j->flight[i]);
    }
    flight_job_free(f, j);
}

/* With the runner the kernel kills the leaders of the handlers that it has started, link_next the
 * rest of their sessions. */
void report_runner_gone(const struct context *ctx, struct flight *f)
{
    bool cleared = link_cleared(ctx->link);
    struct flight_job *j;

    flight_unhold_all(f);
    log_event(LOG_ERROR,
              cleared ? "the runner died; its handlers were killed and their tasks are taken back"
                      : "the runner is gone, and some of its handlers may still be running",
              "jobs=%zu", flight_count(f));
    for (uint32_t at = 0; (j = flight_each(f, &at));) {
        bool begun = j->state == JOB_STARTED ||
                     (j->state == JOB_SENT && link_job_begun(ctx->link, j->number));

        if (begun && cleared)
            take_back_begun(ctx, f, j);
        else if (begun)
            leave_to_lease(f, j);
        else
            flight_give_back_job(f, j, "dqd's runner process died before the start");
    }
}
