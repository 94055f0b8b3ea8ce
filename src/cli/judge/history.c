/*
 * history.c - see history.h. Invariant: each source is read within a bound, newest first.
 */
#include "cli/judge/history.h"

#include "base/mem.h"
#include "base/task.h"
#include "base/text.h"
#include "base/when.h"
#include "cli/judge/failures.h"
#include "store/ask/failure_list.h"
#include "store/ask/task_get.h"
#include "store/fleet/attempt_store.h"
#include "store/fleet/event_store.h"
#include "store/fleet/minute_store.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

/* The counts of a minute are complete when every dqd has written its next heartbeat. */
#define COMPLETE_MS (10 * WHEN_SECOND)

struct reading {
    const struct history_ask *ask;
    struct history *to;
    struct failures failures; /* of one minute */
    int64_t minute_at;
    size_t calls_from; /* the first line of a call of a procedure */
    int64_t step_at;
    size_t counts_from; /* the first line of a count of that step */
};

static struct event_row *add_line(struct history *h)
{
    MEM_ROOM(h->lines, h->count, h->cap);
    struct event_row *l = &h->lines[h->count++];
    *l = (struct event_row){0};
    return l;
}

void history_done(struct history *h)
{
    event_store_free(h->lines, h->count);
    *h = (struct history){0};
}

/* ---- which events ---- */

/* The first ones are no acts. */
static const char *const names[] = {
    "started",
    "done",
    "expired",
    "failed",
    "added",
    "cancelled",
    "dqd-start",
    "dqd-end",
    "dqd-lost",
    "dqd-back",
    "cancel",
    "retry",
    "reschedule",
    "run-now",
    "delete",
    "purge",
    "replace",
    "again",
    "import",
    "pause",
    "resume",
    "breaker-open",
    "breaker-close",
    "init",
    "quiet",
    "unquiet",
    "limit",
    "schedule set",
    "schedule pause",
    "schedule resume",
    "schedule run-now",
    "schedule backfill",
    "schedule delete",
    "schedule apply",
    "schedule import-crontab",
};
#define NAME_COUNT (sizeof names / sizeof names[0])
#define FIRST_ACT 10

bool history_knows(const char *event, size_t len)
{
    for (size_t i = 0; i < NAME_COUNT; i++)
        if (strncmp(names[i], event, len) == 0 && names[i][len] == '\0')
            return true;
    return false;
}

const char *history_nearest(const char *event)
{
    return text_nearest(event, names, NAME_COUNT);
}

/* Whether it is one of those asked for. */
static bool wants(const struct history_ask *ask, const char *event)
{
    size_t len = strlen(event);
    for (size_t i = 0; ask->acts && i < FIRST_ACT; i++)
        if (strcmp(names[i], event) == 0)
            return false;
    if (!ask->events)
        return true;
    for (const char *p = ask->events; *p; p += strcspn(p, ","), p += *p == ',')
        if (strcspn(p, ",") == len && strncmp(p, event, len) == 0)
            return true;
    return false;
}

void history_keep(struct history *h, const struct history_ask *ask)
{
    size_t kept = 0;
    for (size_t i = 0; i < h->count; i++) {
        if (wants(ask, h->lines[i].event))
            h->lines[kept++] = h->lines[i];
        else
            event_store_done(&h->lines[i], 1);
    }
    h->count = kept;
}

static bool is_new(const struct history_ask *ask, uint64_t key, uint64_t count, int64_t at)
{
    return !ask->is_new || ask->is_new(key, count, at, ask->arg);
}

/* An act on several tags may have been on these, too. */
static bool has_tag(const struct history_ask *ask, const char *tag)
{
    return !tag || task_tag_glob(ask->tag_glob, tag);
}

/* ---- events ---- */

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* A line of the same calls in the same minute; NULL: there is none. */
static struct event_row *same_calls(const struct reading *w, const struct event_row *row)
{
    for (size_t i = w->to->count; i > w->calls_from; i--) {
        struct event_row *l = &w->to->lines[i - 1];
        if (l->at / WHEN_MINUTE != row->at / WHEN_MINUTE)
            break;
        if (strcmp(l->who, row->who) == 0 && strcmp(l->event, row->event) == 0 &&
            same_text(l->tag, row->tag))
            return l;
    }
    return NULL;
}

/* Takes it, or frees it if it is not wanted. */
static void take_event(struct reading *w, struct event_row *row)
{
    uint64_t key = text_hash(TEXT_HASH_INIT, row->token, sizeof row->token);
    bool wanted = has_tag(w->ask, row->tag) && task_tag_glob(w->ask->who_glob, row->who) &&
                  is_new(w->ask, key, row->count, row->at);
    struct event_row *l = wanted && row->by_procedure ? same_calls(w, row) : NULL;

    if (wanted && !l) {
        *add_line(w->to) = *row;
        return;
    }
    if (l) {
        l->at = row->at;
        l->count += row->count;
        l->id = 0;
    }
    event_store_done(row, 1);
}

/* *ret_left_at: as event_store_list has it. */
static int read_events(struct db *db, struct reading *w, bool by_procedure, int64_t *ret_left_at,
                       struct err *err)
{
    const struct history_ask *ask = w->ask;
    MEM_LOCAL struct event_row *rows = NULL;
    size_t count = 0;
    int rc = event_store_list(db, by_procedure, ask->since_at, ask->before_at, ask->most, &rows,
                              &count, ret_left_at, err);

    w->calls_from = w->to->count;
    for (size_t i = 0; i < count; i++)
        take_event(w, &rows[i]);
    return rc;
}

/* ---- failures ---- */

static void end_minute(struct reading *w)
{
    for (size_t i = 0; i < w->failures.count; i++) {
        const struct failures_group *g = &w->failures.items[i];
        *add_line(w->to) = (struct event_row){.at = g->first_at,
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
    failures_add(x, &w->failures);
}

/* ---- started, done ---- */

/* Without a filter, those of all tags are one line. */
static void add_count(struct reading *w, const char *event, const char *tag, int64_t at,
                      uint64_t count)
{
    struct history *h = w->to;
    for (size_t i = h->count; !w->ask->tag_glob && count && i > w->counts_from; i--) {
        struct event_row *l = &h->lines[i - 1];
        if (strcmp(l->event, event) != 0)
            continue;
        l->at = MIN(l->at, at);
        l->count += count;
        free(l->tag);
        l->tag = NULL;
        return;
    }
    if (count)
        *add_line(h) = (struct event_row){
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
    if (m->at != w->step_at)
        w->counts_from = w->to->count;
    w->step_at = m->at;
    add_count(w, "started", tag, m->first_at, m->counts.started);
    add_count(w, "done", tag, m->first_at, m->counts.done);
    add_count(w, "expired", tag, m->first_at, m->counts.expired);
}

static int read_minutes(struct db *db, struct reading *w, struct err *err)
{
    const struct history_ask *ask = w->ask;
    const struct minute_ask minutes = {
        .tag_glob = ask->tag_glob,
        .since_ms = MAX(ask->now_at - ask->since_at, ask->is_new ? HISTORY_RECENT_MS : 0),
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

/* Of one time, those of a tag stand together: what was added, then started, before what was done.
 */
static int by_time(const void *a, const void *b)
{
    const struct event_row *x = a, *y = b;
    int order = (x->at > y->at) - (x->at < y->at);
    if (order == 0)
        order = strcmp(x->tag ? x->tag : "", y->tag ? y->tag : "");
    if (order == 0)
        order = (strcmp(y->event, "added") == 0) - (strcmp(x->event, "added") == 0);
    return order ? order : strcmp(y->event, x->event);
}

int history_read(struct db *db, const struct history_ask *ask, struct history *ret, struct err *err)
{
    struct reading w = {.ask = ask, .to = ret};
    const struct failure_filter lately = {
        .since_at = ask->since_at, .before_at = ask->before_at, .newest = ask->most, .oldest = 1};
    int64_t events_at = TASK_TIME_NONE, calls_at = TASK_TIME_NONE, failures_at = TASK_TIME_NONE;

    *ret = (struct history){0};
    int rc = read_events(db, &w, false, &events_at, err);

    if (rc == 0)
        rc = read_events(db, &w, true, &calls_at, err);
    if (rc == 0 && !ask->who_glob && wants(ask, "failed"))
        rc = failure_list(db, &lately, take_failure, &w, &failures_at, err);
    end_minute(&w);
    if (rc == 0 && !ask->who_glob &&
        (wants(ask, "started") || wants(ask, "done") || wants(ask, "expired")))
        rc = read_minutes(db, &w, err);
    history_keep(ret, ask);
    if (ret->count)
        qsort(ret->lines, ret->count, sizeof *ret->lines, by_time);
    if (failures_at != TASK_TIME_NONE && !ask->is_new) /* its minute is one line */
        failures_at += WHEN_MINUTE - 1 - failures_at % WHEN_MINUTE;
    ret->left_at = MAX(events_at, MAX(calls_at, failures_at));
    return rc;
}

/* ---- one task ---- */

static void add_start(struct history *h, const struct task *t, int64_t at, const char *host,
                      uint32_t pid, uint32_t attempt)
{
    if (at != TASK_TIME_NONE)
        *add_line(h) = (struct event_row){
            .at = at,
            .who = mem_printf("dqd@%s", host ? host : "?"),
            .event = mem_strdup("started"),
            .tag = mem_strdup(t->tag),
            .id = t->id,
            .detail = mem_printf("attempt %" PRIu32 ", dqd %" PRIu32, attempt, pid)};
}

static void add_end(struct history *h, const struct task *t, int64_t at, const char *event,
                    const char *detail)
{
    *add_line(h) = (struct event_row){.at = at,
                                      .event = mem_strdup(event),
                                      .tag = mem_strdup(t->tag),
                                      .id = t->id,
                                      .detail = mem_strdup(detail)};
}

/* Of attempts that were done, and of one that runs, only the row of the task may know. */
static void add_attempts(struct history *h, const struct task *t, const struct task_attempt *a,
                         size_t count)
{
    bool last = false;
    for (size_t i = 0; i < count; i++) {
        const char *name = task_outcome_name(a[i].outcome);
        bool done = a[i].outcome == OUTCOME_DONE;
        add_start(h, t, a[i].start_at, a[i].host, a[i].pid, a[i].attempt);
        add_end(h, t, a[i].finish_at, done ? name : "failed",
                done         ? NULL
                : a[i].error ? a[i].error
                             : name);
        last |= a[i].start_at == t->execution_at;
    }
    if (last || t->execution_at == TASK_TIME_NONE ||
        !(TASK_BIT(t->status) & (TASK_BIT(TASK_DONE) | TASK_BIT(TASK_RUNNING))))
        return;
    add_start(h, t, t->execution_at, t->host, t->pid, t->attempt);
    if (t->status == TASK_DONE)
        add_end(h, t, t->finish_at, "done", NULL);
}

static void add_task(struct history *h, const struct task *t, bool cancelled_by_act)
{
    MEM_LOCAL char *key = t->key ? mem_printf("key %s", t->key) : NULL;
    add_end(h, t, t->create_at, "added", key);
    if (task_has_expired(t->status, t->error))
        add_end(h, t, t->finish_at, "expired", t->error);
    else if (t->status == TASK_CANCELLED && !cancelled_by_act)
        add_end(h, t, t->finish_at, "cancelled", "by an application");
}

int history_of(struct db *db, uint64_t id, struct history *ret, struct err *err)
{
    LOCAL_BY(task_done) struct task t = {0};
    struct task_attempt *attempts = NULL;
    size_t count = 0;
    bool cancelled = false;

    *ret = (struct history){.left_at = TASK_TIME_NONE};
    task_init(&t);
    int found = task_get_short(db, id, &t, err), rc = found == ERR_NOT_FOUND ? 0 : found;
    struct err missing = *err;
    if (found == 0)
        rc = attempt_store_list(db, id, &attempts, &count, err);
    if (rc == 0)
        rc = event_store_list_of(db, id, found == 0 ? t.create_at : 0, &ret->lines, &ret->count,
                                 err);
    ret->cap = ret->count;
    for (size_t i = 0; t.status == TASK_CANCELLED && i < ret->count; i++)
        cancelled |= strcmp(ret->lines[i].event, "cancel") == 0 && ret->lines[i].at >= t.finish_at;
    if (rc == 0 && found == 0) {
        add_task(ret, &t, cancelled);
        add_attempts(ret, &t, attempts, count);
    }
    if (rc == 0 && ret->count == 0) {
        *err = missing;
        rc = found;
    }
    if (ret->count)
        qsort(ret->lines, ret->count, sizeof *ret->lines, by_time);
    attempt_store_free(attempts, count);
    return rc;
}
