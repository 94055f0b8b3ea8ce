/*
 * report.c - what the runner says, turned into settlements. Invariant: a report never frees a job
 * that still has an open task without settling that task.
 */
#include "poller/report.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/retry.h"
#include "base/when.h"
#include "conf/handlers_load.h"
#include "poller/state.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <unistd.h>

/* What becomes of a task whose attempt ended like this. */
static void decide(const struct flight_job *j, const struct flight_task *f,
                   const struct message_result *e, struct settlement *s)
{
    int64_t delay_ms;

    if (e->outcome == OUTCOME_DONE) {
        s->event = TASK_SUCCEED;
        return;
    }
    if (e->outcome == OUTCOME_KILLED) { /* not the handler's fault: whoever is free takes it over */
        s->event = TASK_TAKE_BACK;
        return;
    }
    delay_ms =
        retry_delay_ms(&flight_handler(j)->retry, f->attempt, f->max_attempts, poller_random());
    if (e->permanent || delay_ms < 0) {
        s->event = TASK_GIVE_UP;
        return;
    }
    s->event = TASK_TRY_LATER;
    s->retry_delay_ms = e->retry_after_ms >= 0 ? e->retry_after_ms : delay_ms;
}

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

static void on_result(struct poller *p, struct flight_job *j, const struct message_result *e)
{
    struct flight_task *f = find_task(j, e->id);
    struct settlement s = {
        .id = e->id, .outcome = e->outcome, .exit_code = e->exit_code, .signal = e->signal};
    char took[WHEN_TEXT_SIZE];

    if (!f || f->ended)
        return;
    s.version = f->version;
    s.start_at = MAX(dbclock_at(&p->clock, j->start_us), f->expected_at);
    s.finish_at = MAX(dbclock_at(&p->clock, e->finish_us), s.start_at);
    s.error = e->error;
    s.output = e->output;
    s.output_size = e->output_size;
    decide(j, f, e, &s);
    /* not ours any more: nothing of it is recorded */
    if (f->lost || e->outcome == OUTCOME_CANCELLED) {
        log_event(LOG_INFO, "attempt ended, its task was cancelled or taken back",
                  "id=%" PRIu64 " tag=%s attempt=%u outcome=%s took=%s", f->id,
                  log_quote(j->tag->name), f->attempt, task_outcome_name((int)e->outcome),
                  when_format_rough(took, s.finish_at - s.start_at));
        flight_end_task(j, f);
        return;
    }
    log_event(s.event == TASK_SUCCEED ? LOG_DEBUG : LOG_INFO,
              s.event == TASK_SUCCEED ? "task done" : "attempt failed",
              "id=%" PRIu64 " tag=%s attempt=%u outcome=%s took=%s then=%s error=%s", f->id,
              log_quote(j->tag->name), f->attempt, task_outcome_name((int)e->outcome),
              when_format_rough(took, s.finish_at - s.start_at),
              task_status_name((int)task_transition(s.event)->to), log_quote(e->error));
    settle_queue(&p->results, &s, j->leased_us);
    flight_end_task(j, f);
}

static void on_started(struct poller *p, struct flight_job *j, const struct message_started *e)
{
    j->state = JOB_STARTED;
    j->start_us = e->at_us;
    j->pid = e->pid;
    look_job_started(&p->look, &j->tag->look);
    p->flight.sent_bytes[j->kind] -= j->body_bytes;
    log_event(LOG_DEBUG, "handler started", "id=%" PRIu64 " tag=%s count=%u pid=%d",
              j->flight[0].id, log_quote(j->tag->name), j->count, (int)e->pid);
}

static void on_job_report(struct poller *p, const struct message *m)
{
    struct flight_job *j = m->number < p->flight.cap ? p->flight.jobs[m->number] : NULL;

    if (!j)
        return;
    switch (m->type) {
    case MESSAGE_STARTED:
        on_started(p, j, &m->started);
        break;
    case MESSAGE_RESULT:
        on_result(p, j, &m->result);
        break;
    case MESSAGE_RETURNED:
        if (m->returned.cannot_start)
            tags_rest(j->tag, m->returned.error);
        flight_release_job(p, j, m->returned.error);
        break;
    case MESSAGE_ENDED:
        look_tag_took(&j->tag->look, when_steady_us() - j->start_us);
        flight_release_job(p, j, "the runner did not say how it ended");
        break;
    default:
        break;
    }
}

/* Of the text that the runner has read: both have the same table, however often the file
 * changes. */
static int load_text(const struct poller *p, int fd, struct handlers **ret, struct err *err)
{
    char *text = mem_alloc(HANDLERS_LOAD_TEXT_MAX + 1);
    size_t len = 0;
    ssize_t n = 0;
    int rc;

    while (len <= HANDLERS_LOAD_TEXT_MAX &&
           (n = pread(fd, text + len, HANDLERS_LOAD_TEXT_MAX + 1 - len, (off_t)len)) > 0)
        len += (size_t)n;
    rc = n < 0 ? err_set(err, ERR_SYSTEM, "cannot read the runner's copy: %s", strerror(errno))
               : handlers_load_again(p->conf->dqd.handlers, text, len, ret, err);
    free(text);
    return rc;
}

static void on_reloaded(struct poller *p, const struct message_reloaded *e)
{
    struct handlers *fresh = NULL;
    struct err err = {0};

    p->reload_us = 0;
    if (e->error)
        err_set(&err, ERR_CONFIG, "%s", e->error);
    else if (load_text(p, e->text_fd, &fresh, &err) == 0 && (!fresh || fresh->digest != e->digest))
        err_set(&err, ERR_SYSTEM, "the runner's copy is not what it says");
    if (err.code) {
        log_event(LOG_ERROR, "handlers file not taken over, the old one stays", "error=%s",
                  log_quote(err.text));
        handlers_free(fresh);
        return;
    }
    if (--p->table->users == 0) {
        handlers_free(p->table->handlers);
        free(p->table);
    }
    p->table = mem_zero(1, sizeof *p->table);
    p->table->handlers = fresh;
    p->table->users = 1;
    tags_rematch(p);
    log_event(LOG_NOTE, "handlers read again", "file=%s handlers=%zu", log_quote(fresh->path),
              fresh->count);
}

void report_take_all(struct poller *p)
{
    struct message m;

    while (!p->runner_gone && link_next(p->link, &m)) {
        if (m.type == MESSAGE_GONE)
            report_runner_gone(p);
        else if (m.type == MESSAGE_RELOADED)
            on_reloaded(p, &m.reloaded);
        else if (m.type == MESSAGE_PONG)
            p->ping_answered = m.pong.n;
        else
            on_job_report(p, &m);
    }
}

/* A handler was running, or may have been, when the runner died: that attempt counts. */
static void take_back_begun(struct poller *p, struct flight_job *j)
{
    for (uint32_t i = 0; i < j->count; i++) {
        struct flight_task *f = &j->flight[i];
        struct settlement s = {
            .id = f->id, .version = f->version, .outcome = OUTCOME_RUNNER_DIED, .exit_code = -1};

        if (f->ended || f->lost)
            continue;
        s.event = f->attempt >= f->max_attempts ? TASK_GIVE_UP : TASK_TAKE_BACK;
        s.start_at = MAX(dbclock_at(&p->clock, j->start_us ? j->start_us : when_steady_us()),
                         f->expected_at);
        s.finish_at = MAX(dbclock_at(&p->clock, when_steady_us()), s.start_at);
        s.error = "dqd's runner process died while the handler ran";
        settle_queue(&p->results, &s, j->leased_us);
        flight_end_task(j, f);
    }
    flight_job_free(p, j);
}

/* Something of the handler may still run: its task is nobody's until the lease has ended. */
static void leave_to_lease(struct poller *p, struct flight_job *j)
{
    for (uint32_t i = 0; i < j->count; i++) {
        if (j->flight[i].ended || j->flight[i].lost)
            continue;
        log_event(
            LOG_ERROR,
            "not known whether its handler is dead, the task runs again when its lease has ended",
            "id=%" PRIu64 " tag=%s session=%d", j->flight[i].id, log_quote(j->tag->name),
            (int)j->pid);
        flight_end_task(j, &j->flight[i]);
    }
    flight_job_free(p, j);
}

/* The kernel kills the leaders of the handlers with the runner that has started them, link_next
 * the rest of their sessions. */
void report_runner_gone(struct poller *p)
{
    bool cleared = link_cleared(p->link);

    p->runner_gone = true;
    p->flight.held[JOB_SHORT].count = p->flight.held[JOB_LONG].count = 0;
    log_event(LOG_ERROR,
              cleared ? "the runner died, its handlers are killed and their tasks taken back"
                      : "the runner is gone, but whether all its handlers are dead is not known",
              "jobs=%zu", p->flight.count);
    for (size_t i = 0; i < p->flight.cap; i++) {
        struct flight_job *j = p->flight.jobs[i];
        bool begun = j && (j->state == JOB_STARTED ||
                           (j->state == JOB_SENT && link_job_begun(p->link, j->number)));

        if (begun && cleared)
            take_back_begun(p, j);
        else if (begun)
            leave_to_lease(p, j);
        else if (j)
            flight_release_job(p, j, "dqd's runner process died before the start");
    }
}
