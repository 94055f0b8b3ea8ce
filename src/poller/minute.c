/*
 * minute.c - see minute.h. Invariant: every count is in `now` of its tag, in a row of `past`, or in
 * the database; memory is bounded by the number of tags.
 */
#include "poller/minute.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/when.h"

#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

/* Rows of minutes that have ended. With more, no new minute begins until some are written: what
 * happens counts for the last one. */
#define PAST_MOST (4 * MINUTE_TAGS_MOST)
/* Rows in one statement: less than 100 kB. */
#define FLUSH_MOST 500

void minute_init(struct minute *m, const struct context *ctx)
{
    *m = (struct minute){.ctx = ctx, .flush_us = when_steady_us()};
}

void minute_free(struct minute *m)
{
    for (size_t i = 0; i < m->count; i++)
        free(m->tags[i].name);
    free(m->tags);
    minute_store_free(m->past, m->past_count);
    *m = (struct minute){.ctx = m->ctx};
}

/* ---- counting */

/* The current minute has ended: what was not written yet becomes rows of the past. */
static void turn(struct minute *m, int64_t at)
{
    m->past = mem_resize(m->past, m->past_count + m->count + 1, sizeof *m->past);
    for (size_t i = 0; i < m->count; i++) {
        struct minute_tag *t = &m->tags[i];

        if (t->unsaved)
            m->past[m->past_count++] =
                (struct minute_row){.tag = mem_strdup(t->name), .at = m->at, .counts = t->now};
        t->now = (struct counts){0};
        t->unsaved = false;
    }
    m->unsaved = 0;
    m->at = at;
}

/* If the database's clock is set back, the minute stays until it has caught up: a row that was
 * written is never begun again. */
static void look_at_clock(struct minute *m)
{
    int64_t now_at = dbclock_at(&m->ctx->clock, when_steady_us());

    if (now_at >= m->at + WHEN_MINUTE && m->past_count + m->count <= PAST_MOST)
        turn(m, now_at / WHEN_MINUTE * WHEN_MINUTE);
}

static const char *name_of(const void *items, size_t i)
{
    return ((const struct minute_tag *)items)[i].name;
}

static struct minute_tag *insert(struct minute *m, size_t at, const char *name)
{
    m->tags = mem_resize(m->tags, m->count + 1, sizeof *m->tags);
    memmove(&m->tags[at + 1], &m->tags[at], (m->count - at) * sizeof *m->tags);
    m->tags[at] = (struct minute_tag){.name = mem_strdup(name)};
    m->count++;
    m->last = at;
    return &m->tags[at];
}

static struct minute_tag *others(struct minute *m)
{
    bool found = m->count && !strcmp(m->tags[0].name, MINUTE_OTHER_TAGS);

    return found ? &m->tags[0] : insert(m, 0, MINUTE_OTHER_TAGS);
}

/* Drops the tags that have done nothing in this minute. Their totals go to the others', so that
 * the sum over all tags only grows. */
static void make_room(struct minute *m)
{
    struct minute_tag *rest = others(m);
    size_t kept = 1;

    for (size_t i = 1; i < m->count; i++) {
        struct minute_tag *t = &m->tags[i];

        if (t->unsaved || t->now.started || t->now.done || t->now.failed || t->now.retried ||
            t->now.expired) {
            m->tags[kept++] = *t;
        } else {
            counts_add(&rest->total, &t->total);
            free(t->name);
        }
    }
    m->count = kept;
    m->last = 0;
}

static struct minute_tag *tag_of(struct minute *m, const char *name)
{
    bool found;
    size_t at;

    look_at_clock(m);
    if (m->last < m->count && !strcmp(m->tags[m->last].name, name))
        return &m->tags[m->last];
    at = text_place(m->tags, m->count, name_of, name, &found);
    if (!found && m->count > MINUTE_TAGS_MOST) {
        make_room(m);
        at = text_place(m->tags, m->count, name_of, name, &found);
    }
    if (!found && m->count > MINUTE_TAGS_MOST)
        return others(m);
    if (!found)
        return insert(m, at, name);
    m->last = at;
    return &m->tags[at];
}

static void changed(struct minute *m, struct minute_tag *t)
{
    m->unsaved += !t->unsaved;
    t->unsaved = true;
}

void minute_started(struct minute *m, const char *tag, int64_t late_ms)
{
    struct minute_tag *t = tag_of(m, tag);

    counts_start(&t->now, late_ms);
    counts_start(&t->total, late_ms);
    changed(m, t);
}

static void add(struct minute *m, const char *tag, const struct counts *c)
{
    struct minute_tag *t = tag_of(m, tag);

    counts_add(&t->now, c);
    counts_add(&t->total, c);
    changed(m, t);
}

void minute_ended(struct minute *m, const char *tag, enum task_event event,
                  enum settlement_fault fault, int64_t took_ms)
{
    const struct task_transition *x = task_transition(event);
    struct counts c = {.done = x->to == TASK_DONE,
                       .failed = x->to == TASK_FAILED,
                       .retried = x->to == TASK_PENDING && x->attempt_change == 0,
                       .excused = fault == FAULT_EXCUSED};

    if (x->unstarted)
        return;
    c.failures = fault == FAULT_COUNTS ? c.failed + c.retried : 0;
    if (took_ms >= 0)
        counts_end(&c, took_ms);
    add(m, tag, &c);
}

void minute_expired(struct minute *m, const char *tag, uint64_t tasks)
{
    const struct counts c = {.expired = tasks};

    if (tasks)
        add(m, tag, &c);
}

/* ---- writing */

int64_t minute_next(const struct minute *m)
{
    return m->past_count || m->unsaved ? m->flush_us + m->ctx->conf->dqd.heartbeat_ms * 1000
                                       : NEVER_US;
}

/* The rows to be written next, the oldest first; they point into m. *ret_past: how many of them are
 * from the past. */
static size_t pick(const struct minute *m, struct minute_row rows[FLUSH_MOST], size_t *ret_past)
{
    size_t n = MIN(m->past_count, (size_t)FLUSH_MOST);

    *ret_past = n;
    if (n)
        memcpy(rows, m->past, n * sizeof *rows);
    for (size_t i = 0; i < m->count && n < FLUSH_MOST; i++)
        if (m->tags[i].unsaved)
            rows[n++] =
                (struct minute_row){.tag = m->tags[i].name, .at = m->at, .counts = m->tags[i].now};
    return n;
}

static void saved(struct minute *m, size_t past, size_t current)
{
    for (size_t i = 0; i < past; i++)
        free(m->past[i].tag);
    m->past_count -= past;
    if (past)
        memmove(m->past, m->past + past, m->past_count * sizeof *m->past);
    m->unsaved -= current;
    for (size_t i = 0; current > 0; i++) {
        current -= m->tags[i].unsaved;
        m->tags[i].unsaved = false;
    }
}

int minute_flush(struct minute *m, struct err *err)
{
    MEM_LOCAL struct minute_row *rows = mem_alloc(FLUSH_MOST * sizeof *rows);
    size_t past, n = pick(m, rows, &past);
    int rc = n ? minute_store_put(m->ctx->db, &m->ctx->owner, rows, n, err) : 0;

    if (rc < 0)
        return rc;
    saved(m, past, n - past);
    if (n < FLUSH_MOST)
        m->flush_us = when_steady_us();
    return 0;
}

void minute_leave(struct minute *m)
{
    struct err err = {0};
    int rc = 0;

    while (rc == 0 && (m->past_count || m->unsaved) && db_connected(m->ctx->db))
        rc = minute_flush(m, &err);
    if (rc < 0)
        log_event(LOG_WARN, "the last counts for dq stats could not be written", "error=%s",
                  log_quote(err.text));
}
