/*
 * history.c - see history.h. Invariant: each source is read within a bound, newest first.
 */
#include "cli/history.h"

#include "base/mem.h"
#include "base/task.h"
#include "base/text.h"
#include "base/when.h"
#include "cli/failures.h"
#include "store/event_store.h"
#include "store/failure_list.h"
#include "store/minute_store.h"

#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

/* The counts of a minute are complete when every dqd has written its next heartbeat. */
#define COMPLETE_MS (10 * WHEN_SECOND)
#define RECENT_MS (5 * WHEN_MINUTE) /* those that may have become complete only now */

struct reading {
    const struct history_ask *ask;
    struct history *to;
    struct failures failures; /* of one minute */
    int64_t minute_at;
};

static struct history_line *add_line(struct history *h)
{
    if (h->count == h->cap) {
        h->cap = h->cap ? 2 * h->cap : 64;
        h->lines = mem_resize(h->lines, h->cap, sizeof *h->lines);
    }
    struct history_line *l = &h->lines[h->count++];
    *l = (struct history_line){0};
    return l;
}

void history_done(struct history *h)
{
    for (size_t i = 0; i < h->count; i++) {
        struct history_line *l = &h->lines[i];
        free(l->who);
        free(l->event);
        free(l->tag);
        free(l->detail);
    }
    free(h->lines);
    *h = (struct history){0};
}

static bool is_new(const struct history_ask *ask, uint64_t key, uint64_t count, int64_t at)
{
    return !ask->is_new || ask->is_new(key, count, at, ask->arg);
}

/* An act on several tags may have been on these, too. */
static bool has_tag(const struct history_ask *ask, const char *tag)
{
    return !ask->tag_glob || !tag || task_tag_glob(ask->tag_glob, tag);
}

/* ---- events ---- */

static void take_event(const struct event_row *row, void *arg)
{
    struct reading *w = arg;
    const struct event_act *a = &row->act;
    uint64_t key = text_hash(TEXT_HASH_INIT, a->token, sizeof a->token);

    if (!has_tag(w->ask, a->tag) ||
        (w->ask->who_glob && !task_tag_glob(w->ask->who_glob, a->actor)) ||
        !is_new(w->ask, key, row->tasks, row->at))
        return;
    *add_line(w->to) = (struct history_line){.at = row->at,
                                             .who = mem_strdup(a->actor),
                                             .event = mem_strdup(a->verb),
                                             .tag = mem_strdup(a->tag),
                                             .count = row->tasks,
                                             .id = a->task_id,
                                             .detail = mem_strdup(a->arguments)};
}

/* ---- failures ---- */

static void end_minute(struct reading *w)
{
    for (size_t i = 0; i < w->failures.count; i++) {
        const struct failures_group *g = &w->failures.items[i];
        *add_line(w->to) = (struct history_line){.at = g->first_at,
                                                 .event = mem_strdup("failed"),
                                                 .tag = mem_strdup(g->tag),
                                                 .count = g->failures,
                                                 .id = g->failures == 1 ? g->id : 0,
                                                 .detail = mem_strdup(g->pattern)};
    }
    failures_done(&w->failures);
    w->failures = (struct failures){0};
}

static void take_failure(const struct failure *x, void *arg)
{
    struct reading *w = arg;
    int64_t minute_at = x->finish_at - x->finish_at % WHEN_MINUTE;
    uint64_t key = text_hash(text_hash(TEXT_HASH_INIT, &x->id, sizeof x->id), &x->finish_at,
                             sizeof x->finish_at);

    if (!has_tag(w->ask, x->tag) || !is_new(w->ask, key, 1, x->finish_at))
        return;
    if (minute_at != w->minute_at)
        end_minute(w);
    w->minute_at = minute_at;
    failures_add(&w->failures, x);
}

/* ---- started, done ---- */

static void add_count(struct history *h, const char *event, const char *tag, int64_t at,
                      uint64_t count)
{
    if (count)
        *add_line(h) = (struct history_line){
            .at = at, .event = mem_strdup(event), .tag = mem_strdup(tag), .count = count};
}

static void take_minute(struct reading *w, const struct minute_row *m)
{
    const struct history_ask *ask = w->ask;
    const char *tag = *m->tag ? m->tag : NULL;
    uint64_t key = text_hash(TEXT_HASH_INIT, m->tag, strlen(m->tag));

    key = text_hash(key, &m->at, sizeof m->at);
    if (m->at >= ask->before_at || m->at < ask->steps_since_at || !has_tag(ask, tag))
        return;
    if (ask->is_new &&
        (m->at + ask->step_ms + COMPLETE_MS > ask->now_at || !ask->is_new(key, 1, m->at, ask->arg)))
        return;
    add_count(w->to, "started", tag, m->at, m->counts.started);
    add_count(w->to, "done", tag, m->at, m->counts.done);
}

static int read_minutes(struct db *db, struct reading *w, struct err *err)
{
    const struct history_ask *ask = w->ask;
    const struct minute_ask minutes = {
        .tag_glob = ask->tag_glob,
        .since_ms = MAX(ask->now_at - ask->since_at, ask->is_new ? RECENT_MS : 0),
        .step_ms = ask->step_ms};
    struct minute_answer answer = {0};

    int rc = minute_store_read(db, &minutes, &answer, err);
    for (size_t i = 0; rc == 0 && i < answer.count; i++)
        take_minute(w, &answer.rows[i]);
    if (rc == 0)
        minute_store_free(answer.rows, answer.count);
    return rc;
}

/* ---- all of it ---- */

/* Of one time, those of a tag stand together: what was started before what was done. */
static int by_time(const void *a, const void *b)
{
    const struct history_line *x = a, *y = b;
    int order = (x->at > y->at) - (x->at < y->at);
    if (order == 0)
        order = strcmp(x->tag ? x->tag : "", y->tag ? y->tag : "");
    return order ? order : strcmp(y->event, x->event);
}

int history_read(struct db *db, const struct history_ask *ask, struct history *ret, struct err *err)
{
    struct reading w = {.ask = ask, .to = ret};
    const struct failure_filter lately = {
        .since_at = ask->since_at, .before_at = ask->before_at, .newest = ask->most, .oldest = 1};
    int64_t events_at = TASK_TIME_NONE, failures_at = TASK_TIME_NONE;

    *ret = (struct history){0};
    int rc = event_store_list(db, ask->since_at, ask->before_at, ask->most, take_event, &w,
                              &events_at, err);
    if (rc == 0 && !ask->who_glob)
        rc = failure_list(db, &lately, take_failure, &w, &failures_at, err);
    end_minute(&w);
    if (rc == 0 && !ask->who_glob)
        rc = read_minutes(db, &w, err);
    if (ret->count)
        qsort(ret->lines, ret->count, sizeof *ret->lines, by_time);
    if (failures_at != TASK_TIME_NONE) /* its minute is one line */
        failures_at += WHEN_MINUTE - 1 - failures_at % WHEN_MINUTE;
    ret->left_at = MAX(events_at, failures_at);
    return rc;
}
