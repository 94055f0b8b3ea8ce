/*
 * settle.c - how attempts ended, kept until the database knows. Invariant: a result leaves the queue only when the store has said
 * whether it was applied; calling the store again with the same results is safe.
 */
#include "poller/state.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/when.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SETTLE_MOST 500
/* Results wait for company: not at all when nothing else is under way, longer while a queue is being worked off. */
#define WAIT_RUNNING_US 2000
#define WAIT_QUEUE_US 40000
/* A claim that is due so soon after goes first: a task waits for it, and nobody for the result. */
#define CLAIM_SOON_US 2000

void settle_queue(struct poller *p, const struct settlement *s, int64_t leased_us)
{
    struct settle_item *r;

    if (p->result_count == p->result_cap) {
        p->result_cap = p->result_cap ? 2 * p->result_cap : 64;
        p->results = mem_resize(p->results, p->result_cap, sizeof *p->results);
    }
    r = &p->results[p->result_count++];
    r->s = *s;
    r->s.error = mem_strdup(s->error);
    r->s.output = s->output && s->output_size ? mem_dup(s->output, s->output_size) : NULL;
    r->queued_us = when_steady_us();
    r->leased_us = leased_us;
}

static void item_done(struct settle_item *r)
{
    free((char *)r->s.error);
    free((void *)r->s.output);
}

int64_t settle_next(const struct poller *p)
{
    int64_t oldest_us, at, claim_us;

    if (p->result_count == 0)
        return NEVER_US;
    if (p->result_count >= SETTLE_MOST || p->phase != PHASE_RUN)
        return 0;
    oldest_us = p->results[0].queued_us;
    at = oldest_us + (p->job_count == 0 ? 0 : p->job_count > p->started ? WAIT_QUEUE_US : WAIT_RUNNING_US);
    claim_us = claim_next(p);
    if (claim_us < at + CLAIM_SOON_US && at < oldest_us + WAIT_QUEUE_US) {
        int64_t now_us = when_steady_us();

        at = (claim_us > now_us ? claim_us : now_us) + CLAIM_SOON_US;
        if (at > oldest_us + WAIT_QUEUE_US)
            at = oldest_us + WAIT_QUEUE_US;
    }
    return at;
}

static void count(struct poller *p, const struct settlement *s, bool applied)
{
    if (!applied) {
        log_event(LOG_NOTE, "result not recorded: the task was cancelled or taken back meanwhile",
                  "id=%" PRIu64 " version=%" PRIu64 " outcome=%s", s->id, s->version, task_outcome_name((int)s->outcome));
        return;
    }
    if (s->event == TASK_SUCCEED)
        p->total_done++;
    else if (s->event == TASK_GIVE_UP)
        p->total_failed++;
    else if (s->event == TASK_TRY_LATER || s->event == TASK_TAKE_BACK)
        p->total_retried++;
}

/* The server refused the data of some result in the batch: find it, one at a time, and settle it without its text, so that
 * one odd byte never holds up the others. */
static int settle_singly(struct poller *p, struct settlement *s, size_t n, bool *applied, struct err *err)
{
    bool all = p->conf->dqd.history == CONF_HISTORY_ALL;

    for (size_t i = 0; i < n; i++) {
        int rc = claim_store_settle(p->db, &p->owner, &s[i], 1, all, &applied[i], err);

        if (rc == ERR_DATA || rc == ERR_FATAL) {
            struct settlement bare = s[i];

            log_event(LOG_ERROR, "output of a task cannot be stored", "id=%" PRIu64 " error=%s", s[i].id, log_quote(err->text));
            bare.output = NULL;
            bare.output_size = 0;
            bare.error = s[i].error ? "(the text could not be stored)" : NULL;
            rc = claim_store_settle(p->db, &p->owner, &bare, 1, all, &applied[i], err);
        }
        if (rc < 0)
            return rc;
    }
    return 0;
}

int settle_flush(struct poller *p, struct err *err)
{
    size_t n = p->result_count < SETTLE_MOST ? p->result_count : SETTLE_MOST;
    struct settlement s[SETTLE_MOST] = {0};
    bool applied[SETTLE_MOST] = {false};
    bool put_back = false;
    int rc;

    for (size_t i = 0; i < n; i++) {
        s[i] = p->results[i].s;
        put_back |= task_transition(s[i].event)->to == TASK_PENDING;
    }
    rc = claim_store_settle(p->db, &p->owner, s, n, p->conf->dqd.history == CONF_HISTORY_ALL, applied, err);
    if (rc == ERR_DATA || rc == ERR_FATAL)
        rc = settle_singly(p, s, n, applied, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < n; i++) {
        count(p, &s[i], applied[i]);
        item_done(&p->results[i]);
    }
    p->result_count -= n;
    memmove(p->results, p->results + n, p->result_count * sizeof *p->results);
    if (p->o->mode == POLLER_ONCE && (put_back || p->job_count == 0)) { /* due again at once, or added by the last handler */
        p->pass_empty = false;
        p->peek_us = 0;
    }
    return 0;
}

void settle_free(struct poller *p)
{
    for (size_t i = 0; i < p->result_count; i++)
        item_done(&p->results[i]);
    free(p->results);
    p->results = NULL;
    p->result_count = p->result_cap = 0;
}
