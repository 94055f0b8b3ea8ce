/*
 * top_load.c - see top_load.h.
 */
#include "cli/top_load.h"

#include "base/mem.h"
#include "base/when.h"
#include "cli/fleet.h"
#include "store/minute_store.h"
#include "store/tag_store.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

/* Rates are those of the minute that has begun and the one before. */
#define RATE_STEPS 2

struct load {
    const struct cell_style *style;
    const struct fleet *fleet;
    int64_t now_at;
    struct top_data *data;
};

/* ---- rates */

static void add_row(struct top_data *d, const struct minute_answer *a, const struct minute_row *r)
{
    int64_t step = (r->at - a->from_at) / WHEN_MINUTE,
            last = (a->now_at - a->from_at) / WHEN_MINUTE, back = last - step;

    if (back < 0 || back >= TOP_VIEW_STEPS)
        return;
    d->done_steps[TOP_VIEW_STEPS - 1 - back] += r->counts.done;
    d->failed_steps[TOP_VIEW_STEPS - 1 - back] += r->counts.failed + r->counts.retried;
    for (size_t i = 0; back < RATE_STEPS && r->tag && i < d->count; i++) {
        if (strcmp(d->tags[i].name, r->tag) != 0)
            continue;
        d->tags[i].done += (double)r->counts.done;
        d->tags[i].failed += (double)(r->counts.failed + r->counts.retried);
    }
}

static int load_rates(struct cmd_context *c, const char *tag_glob, struct top_data *d,
                      struct err *err)
{
    const struct minute_ask ask = {.tag_glob = tag_glob,
                                   .since_ms = (TOP_VIEW_STEPS - 1) * WHEN_MINUTE,
                                   .step_ms = WHEN_MINUTE};
    struct minute_answer a;
    int rc = minute_store_read(c->db, &ask, &a, err);

    if (rc < 0)
        return rc;
    for (size_t i = 0; i < a.count; i++)
        add_row(d, &a, &a.rows[i]);
    double seconds =
        (double)((RATE_STEPS - 1) * WHEN_MINUTE + a.now_at % WHEN_MINUTE) / WHEN_SECOND;
    for (int i = TOP_VIEW_STEPS - RATE_STEPS; i < TOP_VIEW_STEPS; i++) {
        d->done += (double)d->done_steps[i] / seconds;
        d->failed += (double)d->failed_steps[i] / seconds;
    }
    for (size_t i = 0; i < d->count; i++) {
        d->tags[i].done /= seconds;
        d->tags[i].failed /= seconds;
    }
    minute_store_free(a.rows, a.count);
    return 0;
}

/* ---- reasons */

/* How many may run at once on all hosts, and the first dqd at which the tag rests. */
struct places {
    uint64_t running, global; /* global 0: no limit */
    const struct handler_rest *rest;
    bool other; /* it does not rest everywhere */
};

static struct places places_of(const struct fleet *f, const char *tag)
{
    struct places p = {.running = 0};

    for (size_t i = 0; i < f->count; i++) {
        const struct handler_row *row = NULL;
        if (!f->dqds[i].alive || fleet_dqd_serves(f, &f->dqds[i], tag, &row) != FLEET_SERVES ||
            !row)
            continue;
        const struct handler_rest *rest = fleet_rest(f, &f->dqds[i], tag);
        p.running += row->max_running;
        p.global = row->global_max_running;
        if (rest)
            p.rest = rest;
        else
            p.other = true;
    }
    return p;
}

static void put_pause(struct buf *b, const struct load *l, const struct tag_info *t)
{
    buf_str(b, "paused ");
    if (t->paused_until_at == INT64_MAX) {
        buf_str(b, "until resumed");
    } else {
        buf_str(b, "until ");
        cell_put_time(b, l->style, t->paused_until_at, false);
    }
    if (t->pause_reason)
        buf_printf(b, ": %s", t->pause_reason);
}

static void put_why(struct buf *b, const struct load *l, const struct tag_info *t)
{
    const struct fleet *f = l->fleet;
    const struct places p = places_of(f, t->tag);
    uint64_t running = t->count[TASK_RUNNING];
    char text[WHEN_TEXT_SIZE];

    if (t->paused_until_at != TASK_TIME_NONE) {
        put_pause(b, l, t);
    } else if (!t->due) {
        if (t->next_at != TASK_TIME_NONE && t->next_at > l->now_at)
            buf_printf(
                b, "next in %s",
                when_format_rough(text, (t->next_at - l->now_at) / WHEN_SECOND * WHEN_SECOND));
    } else if (!f->alive) {
        buf_str(b, "no dqd is alive (last: ");
        fleet_put_last(b, f);
        buf_chr(b, ')');
    } else if (fleet_serves(f, t->tag, NULL) == FLEET_SERVES_NOT) {
        buf_str(b, "no dqd serves it");
    } else if (p.rest && !p.other) {
        buf_printf(b, "cannot start: rests for %s",
                   when_format_rough(text, MAX(p.rest->for_ms, 0) / WHEN_SECOND * WHEN_SECOND));
    } else if (p.global && running >= p.global) {
        buf_printf(b, "global_max_running %" PRIu64 " is full", p.global);
    } else if (p.running && running >= p.running) {
        buf_printf(b, "max_running %" PRIu64 " is full", p.running);
    } else if (l->data->slots && l->data->running >= l->data->slots) {
        buf_printf(b, "all %" PRIu64 " slots are busy", l->data->slots);
    }
}

/* ---- all of it */

static void add_tag(struct load *l, const struct tag_info *t)
{
    struct buf why = BUF_INIT;
    bool late = t->late_from_at != TASK_TIME_NONE && t->late_from_at <= l->now_at;

    put_why(&why, l, t);
    l->data->tags[l->data->count++] =
        (struct top_tag){.name = mem_strdup(t->tag),
                         .running = t->count[TASK_RUNNING],
                         .due = t->due,
                         .due_sampled = t->due_sampled,
                         .late_ms = late ? l->now_at - t->late_from_at : -1,
                         .why = buf_take(&why)};
}

int top_load(struct cmd_context *c, const char *tag_glob, struct top_data *ret, struct err *err)
{
    struct top_data d = {.count = 0};
    struct fleet fleet = {.count = 0};
    struct load l = {.style = &c->style.cell, .fleet = &fleet, .data = &d};
    struct tag_info *tags = NULL;
    size_t count = 0;
    int rc = fleet_load(c->db, &fleet, err);

    if (rc == 0)
        rc = tag_store_list(c->db, tag_glob, &(struct tag_count_how){.exact = false}, &tags, &count,
                            &l.now_at, err);
    d.alive = fleet.alive;
    d.dqds = fleet.count;
    for (size_t i = 0; rc == 0 && i < fleet.count; i++) {
        d.running += fleet.dqds[i].alive ? (uint64_t)fleet.dqds[i].running : 0;
        d.slots += fleet.dqds[i].alive ? (uint64_t)fleet.dqds[i].slots : 0;
    }
    d.tags = mem_alloc((count + 1) * sizeof *d.tags);
    for (size_t i = 0; i < count; i++)
        add_tag(&l, &tags[i]);
    if (rc == 0)
        rc = load_rates(c, tag_glob, &d, err);
    if (count)
        tag_store_free(tags, count);
    fleet_done(&fleet);
    if (rc < 0)
        top_view_free(&d);
    else
        *ret = d;
    return rc;
}
