/*
 * follow.c - see follow.h. Invariant: the runner is asked for more of a job's output only after all
 * that it had sent was written, so that a slow database bounds what is in memory.
 */
#include "poller/follow.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/when.h"
#include "store/fleet/output_store.h"

#include <stdlib.h>
#include <sys/param.h>

/* Between two questions to the runner: with the follower's own interval this makes the output at
 * most a second late. */
#define ASK_EVERY_US INT64_C(500000)
/* After the end of an attempt, until its output is deleted: followers look more often. */
#define KEEP_US INT64_C(5000000)
/* Of an attempt's output, for followers that come later. It is cut when a quarter more is there. */
#define KEPT_BYTES ((uint64_t)1 << 20)

/* An attempt that someone follows. */
struct followed {
    struct claim_ref attempt;
    uint32_t number;     /* of its job */
    struct buf fresh;    /* to be written */
    uint64_t start, end; /* where that begins, and where what the runner sent ends */
    uint64_t kept_from;
    uint32_t seq;      /* of the last chunk */
    bool unmarked;     /* nobody follows it any more */
    bool asked;        /* the runner's answer is not complete yet */
    bool begun;        /* its first one was written, even if empty: followers wait for that */
    int64_t ask_us;    /* when to ask again */
    int64_t delete_us; /* the attempt has ended, and its end is written; 0: it has not */
};

void follow_init(struct follow *f, const struct context *ctx, const struct flight *flight)
{
    *f = (struct follow){.ctx = ctx, .flight = flight};
}

void follow_free(struct follow *f)
{
    for (size_t i = 0; i < f->count; i++)
        buf_done(&f->items[i].fresh);
    free(f->items);
    f->items = NULL;
    f->count = 0;
}

/* ---- what is followed */

static struct followed *find(const struct follow *f, const struct claim_ref *attempt)
{
    for (size_t i = 0; i < f->count; i++)
        if (f->items[i].attempt.id == attempt->id &&
            f->items[i].attempt.version == attempt->version)
            return &f->items[i];
    return NULL;
}

/* The task of an attempt that runs in this job; NULL: it has ended. */
static struct flight_task *find_task(const struct flight_job *j, const struct claim_ref *attempt)
{
    for (uint32_t k = 0; j && k < j->count; k++)
        if (j->flight[k].id == attempt->id && j->flight[k].version == attempt->version)
            return j->flight[k].ended ? NULL : &j->flight[k];
    return NULL;
}

static struct flight_task *task_of(const struct follow *f, const struct followed *e)
{
    return find_task(flight_job(f->flight, e->number), &e->attempt);
}

static void ask(struct follow *f, struct followed *e, enum message_follow_what what)
{
    e->asked = what != MESSAGE_FOLLOW_END;
    e->ask_us = when_steady_us() + ASK_EVERY_US;
    if (!f->ctx->runner_gone)
        link_send_follow(f->ctx->link, e->number, what);
}

/* An attempt that was followed before goes on with the numbers of its chunks. */
static void begin(struct follow *f, const struct claim_ref *attempt)
{
    struct flight_job *j;

    for (uint32_t at = 0;
         f->count < OUTPUT_STORE_ATTEMPTS_MOST && (j = flight_each(f->flight, &at));) {
        const struct flight_task *t = j->state == JOB_STARTED ? find_task(j, attempt) : NULL;
        if (!t)
            continue;
        f->items = mem_resize(f->items, f->count + 1, sizeof *f->items);
        f->items[f->count++] =
            (struct followed){.attempt = *attempt, .number = j->number, .seq = t->output_seq};
        ask(f, &f->items[f->count - 1], MESSAGE_FOLLOW_BEGIN);
        return;
    }
}

void follow_checked(struct follow *f, const struct claim_ref *refs, const bool *followed, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct followed *e = f->count ? find(f, &refs[i]) : NULL;
        if (e)
            e->unmarked = !followed[i];
        else if (followed[i])
            begin(f, &refs[i]);
    }
}

/* The tasks of a batch share its output. A new follower of one of them makes the runner send again
 * what others have already. */
void follow_take(struct follow *f, uint32_t number, const struct message_chunk *m)
{
    for (size_t i = 0; i < f->count; i++) {
        struct followed *e = &f->items[i];
        uint64_t known = e->end > m->start ? MIN(e->end - m->start, m->size) : 0;

        if (e->number != number || e->delete_us)
            continue;
        if (!e->fresh.len || m->start > e->end) {
            buf_reset(&e->fresh);
            e->start = m->start + known;
        }
        if (m->size > known) {
            buf_add(&e->fresh, (const char *)m->data + known, m->size - known);
            e->end = m->start + m->size;
        }
        if (!m->more)
            e->asked = false;
    }
}

/* ---- the duty */

static bool shared(const struct follow *f, const struct followed *e)
{
    for (size_t i = 0; i < f->count; i++)
        if (&f->items[i] != e && f->items[i].number == e->number && !f->items[i].delete_us)
            return true;
    return false;
}

static int forget(struct follow *f, struct followed *e, struct err *err)
{
    if (task_of(f, e) && !shared(f, e))
        ask(f, e, MESSAGE_FOLLOW_END);
    int rc = output_store_drop(f->ctx->db, &e->attempt, err);
    if (rc < 0)
        return rc;
    buf_done(&e->fresh);
    *e = f->items[--f->count];
    return 0;
}

static int put(struct follow *f, struct followed *e, struct flight_task *t, struct err *err)
{
    struct output_chunk c = {.seq = e->seq + 1,
                             .start = e->fresh.len ? e->start : e->end,
                             .last = !t,
                             .data = e->fresh.data,
                             .size = e->fresh.len};
    int rc = output_store_add(f->ctx->db, &e->attempt, &c, err);

    if (rc < 0)
        return rc;
    e->seq++;
    if (t)
        t->output_seq = e->seq;
    else
        e->delete_us = when_steady_us() + KEEP_US;
    e->begun = true;
    buf_reset(&e->fresh);
    if (e->end - e->kept_from < KEPT_BYTES + KEPT_BYTES / 4)
        return 0;
    e->kept_from = e->end - KEPT_BYTES;
    return output_store_trim(f->ctx->db, &e->attempt, e->kept_from, err);
}

/* When something is to be done for it. */
static int64_t next(const struct follow *f, const struct followed *e)
{
    if (e->delete_us)
        return e->delete_us;
    if (e->unmarked || !task_of(f, e))
        return 0;
    if (e->asked)
        return NEVER_US;
    return e->fresh.len || !e->begun ? 0 : e->ask_us;
}

int64_t follow_next(const struct follow *f)
{
    int64_t next_us = NEVER_US;

    for (size_t i = 0; i < f->count; i++)
        next_us = MIN(next_us, next(f, &f->items[i]));
    return next_us;
}

int follow_run(struct follow *f, struct err *err)
{
    const int64_t now_us = when_steady_us();
    int rc = 0;

    for (size_t i = f->count; rc == 0 && i-- > 0;) { /* the last one takes the place of one that is
                                                      * forgotten */
        struct followed *e = &f->items[i];
        struct flight_task *t = task_of(f, e);

        if (next(f, e) > now_us)
            continue;
        if (e->delete_us || e->unmarked)
            rc = forget(f, e, err);
        else if (!t || e->fresh.len || !e->begun)
            rc = put(f, e, t, err);
        else
            ask(f, e, MESSAGE_FOLLOW_MORE);
    }
    return rc;
}
