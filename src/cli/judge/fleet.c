/*
 * fleet.c - see fleet.h. Invariant: "no dqd serves it" is said only if every live dqd has written
 * down what it serves.
 */
#include "cli/judge/fleet.h"

#include "base/limit.h"
#include "base/mem.h"
#include "base/task.h"
#include "base/text.h"
#include "base/when.h"
#include "conf/handlers.h"
#include "store/ask/why_store.h"
#include "store/fleet/event_store.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

/* The rows of one number, and the same in the form that handlers_match takes. */
struct fleet_table {
    uint64_t number;
    const struct handler_row *rows;
    struct handlers handlers;
};

/* ---- loading ---- */

static size_t collect_numbers(const struct fleet *f, uint64_t *numbers)
{
    size_t n = 0;
    for (size_t i = 0; i < f->count; i++) {
        const struct poller_info *p = &f->dqds[i];
        bool seen = !p->alive || p->handlers == 0;
        for (size_t k = 0; !seen && k < n; k++)
            seen = numbers[k] == p->handlers;
        if (!seen)
            numbers[n++] = p->handlers;
    }
    return n;
}

/* The rows of a number come one after the other. */
static void make_tables(struct fleet *f, size_t most)
{
    f->tables = mem_zero(most + 1, sizeof *f->tables);
    for (size_t i = 0; i < f->row_count; i++) {
        struct fleet_table *t = f->table_count ? &f->tables[f->table_count - 1] : NULL;
        if (!t || t->number != f->rows[i].handlers) {
            if (f->table_count == most) /* rows that nobody asked for */
                return;
            t = &f->tables[f->table_count++];
            *t = (struct fleet_table){.number = f->rows[i].handlers, .rows = &f->rows[i]};
            t->handlers.items = mem_zero(f->row_count - i, sizeof *t->handlers.items);
        }
        struct handler *h = &t->handlers.items[t->handlers.count++];
        h->name = f->rows[i].pattern;
        h->is_glob = f->rows[i].is_glob;
        h->limit = f->rows[i].limit;
    }
}

/* A dqd without a row is forgotten after a day, as one with a row. An account that may not read
 * events does not see that it ended. */
static void load_ended(struct db *db, struct fleet *f)
{
    const struct poller_info *last = fleet_last(f);
    struct err err;

    (void)!event_store_last_end(db, last ? MIN(last->silent_ms, WHEN_DAY) : WHEN_DAY, &f->ended,
                                &f->ended_ms, &err);
}

int fleet_load_dqds(struct db *db, struct fleet *ret, struct err *err)
{
    *ret = (struct fleet){.dqds = NULL};
    int rc = poller_store_list(db, &ret->dqds, &ret->count, err);
    for (size_t i = 0; rc == 0 && i < ret->count; i++) {
        const struct poller_info *p = &ret->dqds[i];
        ret->alive += p->alive;
        ret->between += poller_store_is_between(p);
        ret->quiet += p->alive && p->quiet;
        ret->silent += poller_store_is_silent(p);
        ret->slots += p->alive ? (uint64_t)MAX(p->slots, p->running) : 0; /* it may end */
        ret->running += p->alive ? (uint64_t)MAX(p->running, 0) : 0;
    }
    if (rc == 0 && !ret->alive)
        load_ended(db, ret);
    return rc;
}

int fleet_load(struct db *db, struct fleet *ret, struct err *err)
{
    int rc = fleet_load_dqds(db, ret, err);
    if (rc == 0)
        rc = limit_store_list(db, NULL, true, &ret->limits, &ret->limit_count, err);
    if (rc < 0 || ret->alive == 0)
        return rc;
    MEM_LOCAL uint64_t *numbers = mem_zero(ret->count + 1, sizeof *numbers);
    size_t n = collect_numbers(ret, numbers);
    rc = handler_store_list(db, numbers, n, &ret->rows, &ret->row_count, err);
    if (rc == 0)
        make_tables(ret, n);
    if (rc == 0)
        rc = handler_store_list_rests(db, &ret->rests, &ret->rest_count, err);
    bool shared = false;
    for (size_t i = 0; i < ret->row_count; i++)
        shared = shared || ret->rows[i].limit;
    struct err denied; /* then what runs of other tags is not known */
    if (rc == 0 && shared)
        (void)!why_store_running(db, NULL, &ret->under, &ret->under_count, &denied);
    return rc;
}

void fleet_done(struct fleet *f)
{
    for (size_t i = 0; i < f->table_count; i++)
        free(f->tables[i].handlers.items); /* the names are those of the rows */
    free(f->tables);
    handler_store_free(f->rows, f->row_count);
    handler_store_free_rests(f->rests, f->rest_count);
    limit_store_free(f->limits, f->limit_count);
    poller_store_tasks_free(f->under, f->under_count);
    poller_store_free(f->dqds, f->count);
    free(f->ended);
    *f = (struct fleet){.dqds = NULL};
}

/* ---- which dqd serves which tag ---- */

/* NULL: not known. */
static const struct fleet_table *table_of(const struct fleet *f, const struct poller_info *dqd)
{
    for (size_t i = 0; i < f->table_count; i++)
        if (f->tables[i].number == dqd->handlers)
            return &f->tables[i];
    return NULL;
}

enum fleet_serves fleet_dqd_serves(const struct fleet *f, const struct poller_info *dqd,
                                   const char *tag, const struct handler_row **ret_row)
{
    const struct fleet_table *t = table_of(f, dqd);
    if (ret_row)
        *ret_row = NULL;
    if (!dqd->alive || dqd->handlers == 0 || !task_tag_glob(dqd->tags, tag))
        return FLEET_SERVES_NOT;
    if (!t)
        return FLEET_SERVES_UNKNOWN;
    int index = handlers_match(&t->handlers, tag);
    if (index < 0)
        return FLEET_SERVES_NOT;
    if (ret_row)
        *ret_row = &t->rows[index];
    return FLEET_SERVES;
}

enum fleet_serves fleet_serves(const struct fleet *f, const char *tag,
                               const struct handler_row **ret_row)
{
    enum fleet_serves best = f->alive ? FLEET_SERVES_NOT : FLEET_SERVES_UNKNOWN;
    if (ret_row)
        *ret_row = NULL;
    for (size_t i = 0; i < f->count; i++) {
        enum fleet_serves s = fleet_dqd_serves(f, &f->dqds[i], tag, ret_row);
        if (s == FLEET_SERVES)
            return s;
        if (s == FLEET_SERVES_UNKNOWN)
            best = s;
    }
    return best;
}

int fleet_set_wait(struct db *db, struct fleet *f, bool timed, struct task_new *t, struct err *err)
{
    struct retry_policy p = retry_default;
    const struct handler_row *row;

    if (!f->asked && db && fleet_load(db, f, err) < 0)
        fleet_done(f);
    f->asked = true;
    fleet_serves(f, t->tag, &row);
    if (row && row->retry) {
        char *at = row->retry;
        for (p.steps = 0; *at && p.steps < RETRY_STEPS_MAX; at += *at == ',')
            p.step_ms[p.steps++] = strtoll(at, &at, 10);
    }
    uint32_t most = t->max_attempts ? t->max_attempts : retry_max_attempts(&p);
    int64_t wait_ms = retry_delay_ms(&p, t->attempt, most, 0);
    if (t->attempt >= most)
        return err_set(err, ERR_DATA,
                       "attempted %" PRIu32 " times of %" PRIu32 ": no attempt is left", t->attempt,
                       most);
    if (!timed)
        t->delay_ms = MAX(wait_ms, 0); /* the list may have no wait at all */
    return 0;
}

const struct handler_row *fleet_handlers(const struct fleet *f, const struct poller_info *dqd,
                                         size_t *ret_count)
{
    const struct fleet_table *t = dqd->alive ? table_of(f, dqd) : NULL;
    *ret_count = t ? t->handlers.count : 0;
    return t ? t->rows : NULL;
}

const char *const fleet_reasons[] = {
    [HANDLER_RESTS] = "rests", [HANDLER_REFUSED] = "is refused", [HANDLER_SLOW] = "is slow"};

/* By its own name, or if the server refuses all tags of its handler, by the name of that. */
static bool is_of(const struct fleet *f, const struct handler_rest *r,
                  const struct poller_info *dqd, const char *tag)
{
    const struct handler_row *h = NULL;
    if (strcmp(r->tag, tag) == 0)
        return r->reason != HANDLER_KEPT;
    return r->reason == HANDLER_REFUSED && fleet_dqd_serves(f, dqd, tag, &h) == FLEET_SERVES && h &&
           strcmp(r->tag, h->pattern) == 0;
}

const struct handler_rest *fleet_rest(const struct fleet *f, const struct poller_info *dqd,
                                      const char *tag)
{
    for (size_t i = 0; dqd->alive && i < f->rest_count; i++) {
        const struct handler_rest *r = &f->rests[i];
        if (memcmp(r->token, dqd->token, sizeof r->token) == 0 &&
            (r->for_ms > 0 || dqd->next_pass_at != TASK_TIME_NONE) && is_of(f, r, dqd, tag))
            return r;
    }
    return NULL;
}

const struct handler_rest *fleet_rests(const struct fleet *f, const char *tag)
{
    const struct handler_rest *last = NULL;
    bool all = true;
    for (size_t i = 0; i < f->count; i++) {
        if (fleet_dqd_serves(f, &f->dqds[i], tag, NULL) != FLEET_SERVES)
            continue;
        last = fleet_rest(f, &f->dqds[i], tag);
        if (last && last->reason != HANDLER_RESTS)
            return last;
        all = all && last;
    }
    return all ? last : NULL;
}

/* What two handlers of a tag disagree about; NULL: nothing. */
static char *differ(const char *tag, const struct poller_info *p, const struct handler_row *a,
                    const struct poller_info *q, const struct handler_row *b)
{
    const char *own = "own";
    if (strcmp(a->limit ? a->limit : own, b->limit ? b->limit : own) != 0)
        return mem_printf("limit of %s differs: %s on %s, %s on %s", tag, a->limit ? a->limit : own,
                          p->host, b->limit ? b->limit : own, q->host);
    if (a->global_max_running != b->global_max_running)
        return mem_printf("global_max_running of %s differs: %" PRIu32 " on %s, %" PRIu32 " on %s",
                          tag, a->global_max_running, p->host, b->global_max_running, q->host);
    return NULL;
}

uint32_t fleet_limit(const struct fleet *f, const char *tag, char **ret_differ)
{
    const struct poller_info *first = NULL;
    const struct handler_row *h = NULL, *first_h = NULL;
    uint32_t limit = 0;
    if (ret_differ)
        *ret_differ = NULL;
    for (size_t i = 0; i < f->count; i++) {
        if (fleet_dqd_serves(f, &f->dqds[i], tag, &h) != FLEET_SERVES || !h)
            continue;
        limit = first ? limit_join(limit, h->global_max_running) : h->global_max_running;
        if (!first) {
            first = &f->dqds[i];
            first_h = h;
        } else if (ret_differ && !*ret_differ) {
            *ret_differ = differ(tag, first, first_h, &f->dqds[i], h);
        }
    }
    for (size_t i = 0; ret_differ && !*ret_differ && first && first_h->limit && i < f->count; i++) {
        const struct fleet_table *t = f->dqds[i].alive ? table_of(f, &f->dqds[i]) : NULL;
        if (t && handlers_match(&t->handlers, tag) < 0 &&
            handlers_share(&t->handlers, first_h->limit))
            *ret_differ = mem_printf("limit of %s differs: %s on %s, no handler on %s", tag,
                                     first_h->limit, first->host, f->dqds[i].host);
    }
    return limit;
}

const char *fleet_limit_name(const struct fleet *f, const char *tag)
{
    const struct handler_row *h = NULL;
    for (size_t i = 0; i < f->count; i++)
        if (fleet_dqd_serves(f, &f->dqds[i], tag, &h) == FLEET_SERVES && h)
            return h->limit ? h->limit : tag;
    return tag;
}

static const struct limit_row *row_named(const struct fleet *f, const char *name)
{
    for (size_t i = 0; i < f->limit_count; i++)
        if (strcmp(f->limits[i].name, name) == 0)
            return &f->limits[i];
    return NULL;
}

struct limit fleet_limit_of(const struct fleet *f, const char *tag, int64_t paused_until_at,
                            const char *reason)
{
    const char *name = fleet_limit_name(f, tag);
    const struct limit_row *row = row_named(f, name);
    struct limit l = row ? row->limit : (struct limit){LIMIT_NONE};
    l.name = strcmp(name, tag) != 0 ? name : NULL;
    l.probed = l.breaker > 0;
    if (!l.running)
        l.running = fleet_limit(f, tag, NULL);
    if (paused_until_at > l.paused_until_at) {
        l.paused_until_at = paused_until_at;
        l.reason = reason;
    }
    return l;
}

uint64_t fleet_running(const struct fleet *f, const char *tag, uint64_t own)
{
    const char *name = fleet_limit_name(f, tag);
    uint64_t sum = 0;
    for (size_t i = 0; i < f->under_count; i++)
        if (strcmp(fleet_limit_name(f, f->under[i].tag), name) == 0)
            sum += f->under[i].tasks;
    return MAX(sum, own);
}

bool fleet_uses_limit(const struct fleet *f, const char *name)
{
    bool used = fleet_serves(f, name, NULL) == FLEET_SERVES;
    for (size_t i = 0; i < f->row_count; i++)
        used |= f->rows[i].limit && strcmp(f->rows[i].limit, name) == 0;
    return used;
}

enum limit_why fleet_put_limit(struct buf *b, const struct fleet *f, const struct tag_info *t,
                               int64_t now_at)
{
    struct limit l = fleet_limit_of(f, t->tag, t->paused_until_at, t->pause_reason);
    struct limit_answer a =
        limit_ask(&l, l.running ? fleet_running(f, t->tag, t->count[TASK_RUNNING]) : 0, now_at, 0);
    limit_put(b, &l, &a, now_at);
    return a.why;
}

void fleet_put_waits(struct buf *b, const struct fleet *f, const struct tag_info *t, int64_t now_at)
{
    const struct handler_rest *rest = fleet_rests(f, t->tag);
    if (fleet_serves(f, t->tag, NULL) == FLEET_SERVES_NOT)
        buf_str(b, "no dqd serves it");
    else if (rest)
        buf_printf(b, "%s: %s", fleet_reasons[rest->reason], rest->error);
    else
        fleet_put_limit(b, f, t, now_at);
}

/* Since when the limits and pauses of a tag let its tasks start; INT64_MAX: they do not. A change
 * of one may have let them. */
static int64_t since_of(const struct fleet *f, const struct tag_info *t, int64_t now_at)
{
    struct limit l = fleet_limit_of(f, t->tag, t->paused_until_at, t->pause_reason);
    int64_t since_at = limit_since(&l, now_at);
    for (size_t i = 0; i < f->limit_count; i++) {
        const struct limit_row *r = &f->limits[i];
        if (strcmp(r->name, t->tag) == 0 || (l.name && strcmp(r->name, l.name) == 0) ||
            (r->is_pattern && task_tag_glob(r->name, t->tag)))
            since_at = MAX(since_at, MAX(r->update_at, r->limit.paused_until_at));
    }
    return since_at;
}

int fleet_list_tags(const struct fleet *f, struct db *db, const char *tag_glob,
                    const struct tag_count_how *how, struct tag_info **ret, size_t *ret_count,
                    int64_t *ret_now_at, struct err *err)
{
    int rc = tag_store_list(db, tag_glob, how, ret, ret_count, ret_now_at, err);
    for (size_t i = 0; rc == 0 && i < *ret_count; i++) {
        struct tag_info *t = &(*ret)[i];
        int64_t since_at = t->late_from_at == TASK_TIME_NONE ? 0 : since_of(f, t, *ret_now_at);
        if (since_at == INT64_MAX)
            t->late_from_at = TASK_TIME_NONE;
        else if (t->late_from_at != TASK_TIME_NONE)
            t->late_from_at = MAX(t->late_from_at, since_at);
    }
    return rc;
}

/* ---- typing errors ---- */

/* For the glob "payment.*" and the tag "paymet.x": "payment.x". NULL: the glob has another form, or
 * the tag is not near. */
static char *nearest_of_glob(const char *glob, const char *tag)
{
    size_t len = strcspn(glob, "*?");
    if (len == 0 || glob[len] != '*' || glob[len + 1] != '\0')
        return NULL;
    const char *end = strchr(tag, glob[len - 1]);
    if (!end || end[1] == '\0')
        return NULL;
    MEM_LOCAL char *fixed = mem_dup(glob, len), *given = mem_dup(tag, (size_t)(end + 1 - tag));
    const char *const words[] = {fixed};
    char *ret = text_nearest(given, words, 1) ? mem_printf("%s%s", fixed, end + 1) : NULL;
    return ret;
}

char *fleet_nearest(const struct fleet *f, const char *tag)
{
    MEM_LOCAL const char **names = mem_zero(f->row_count + 1, sizeof *names);
    size_t count = 0;
    char *ret = NULL;
    for (size_t i = 0; i < f->row_count; i++)
        if (!f->rows[i].is_glob)
            names[count++] = f->rows[i].pattern;
    const char *near = text_nearest(tag, names, count);
    if (near)
        ret = mem_strdup(near);
    for (size_t i = 0; !ret && i < f->row_count; i++)
        if (f->rows[i].is_glob)
            ret = nearest_of_glob(f->rows[i].pattern, tag);
    return ret;
}

/* ---- notes ---- */

const struct poller_info *fleet_last(const struct fleet *f)
{
    const struct poller_info *last = NULL;

    for (size_t i = 0; i < f->count; i++)
        if (!last || f->dqds[i].silent_ms < last->silent_ms)
            last = &f->dqds[i];
    return last;
}

void fleet_put_last(struct buf *b, const struct fleet *f)
{
    const struct poller_info *last = fleet_last(f);
    char text[WHEN_TEXT_SIZE];
    const char *host = f->ended ? f->ended : last ? last->host : NULL;
    const int64_t ago_ms = f->ended ? f->ended_ms : last ? last->silent_ms : 0;

    if (host)
        buf_printf(b, "%s, %s ago", host,
                   when_format_rough(text, ago_ms / WHEN_SECOND * WHEN_SECOND));
}

void fleet_say_dqds(const struct cmd_context *c, const struct fleet *f)
{
    BUF_LOCAL struct buf last = BUF_INIT;
    if (f->alive)
        return;
    fleet_put_last(&last, f);
    if (last.len)
        cmd_note(c, "no dqd is alive (last: %s)", last.data);
    else
        cmd_note(c, "no dqd is alive");
}

bool fleet_say_tag(const struct cmd_context *c, const struct fleet *f, const char *tag)
{
    if (fleet_serves(f, tag, NULL) != FLEET_SERVES_NOT)
        return false;
    MEM_LOCAL char *near = fleet_nearest(f, tag);
    if (near)
        cmd_note(c, "no dqd serves tag \"%s\"; did you mean \"%s\"?", tag, near);
    else
        cmd_note(c, "no dqd serves tag \"%s\"", tag);
    return true;
}

void fleet_note_dqds(struct cmd_context *c)
{
    LOCAL_BY(fleet_done) struct fleet f = {0};
    struct err err;
    if (c->quiet || out_flush(&err) < 0)
        return;
    if (fleet_load_dqds(c->db, &f, &err) == 0)
        fleet_say_dqds(c, &f);
}

bool fleet_note_tag(struct cmd_context *c, const char *tag)
{
    LOCAL_BY(fleet_done) struct fleet f = {0};
    struct err err;
    bool said = false;
    if (c->quiet)
        return false;
    if (fleet_load(c->db, &f, &err) == 0) {
        fleet_say_dqds(c, &f);
        said = fleet_say_tag(c, &f, tag);
    }
    return said;
}
