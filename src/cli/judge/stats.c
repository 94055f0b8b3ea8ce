/*
 * stats.c - see stats.h. Invariant: the first entry of tags is the sum of the others.
 */
#include "cli/judge/stats.h"
#include "store/fleet/limit_store.h"

#include "base/mem.h"
#include "base/order.h"
#include "base/when.h"

#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

int64_t stats_step_ms(int64_t since_ms, size_t count)
{
    int64_t minutes = (since_ms / (int64_t)count + WHEN_MINUTE - 1) / WHEN_MINUTE;

    return MAX(minutes, 1) * WHEN_MINUTE;
}

int64_t stats_elapsed_ms(const struct stats *s)
{
    return MAX(s->now_at - s->from_at, 1);
}

int64_t stats_step_at(const struct stats *s, size_t step)
{
    return s->from_at + (int64_t)step * s->step_ms;
}

int64_t stats_step_elapsed_ms(const struct stats *s, size_t step)
{
    return MAX(MIN(stats_step_at(s, step) + s->step_ms, s->now_at) - stats_step_at(s, step), 1);
}

double stats_per_second(uint64_t events, int64_t elapsed_ms)
{
    return (double)events * 1000 / (double)elapsed_ms;
}

void stats_add(struct tag_info *all, const struct tag_info *t)
{
    for (int s = 0; s < TASK_STATUS_COUNT; s++) {
        all->count[s] += t->count[s];
        all->sampled[s] |= t->sampled[s];
    }
    all->due += t->due;
    all->due_sampled |= t->due_sampled;
    all->late_sampled |= t->late_from_at != TASK_TIME_NONE && t->late_sampled;
    if (t->late_from_at != TASK_TIME_NONE &&
        (all->late_from_at == TASK_TIME_NONE || t->late_from_at < all->late_from_at))
        all->late_from_at = t->late_from_at;
}

static struct stats_tag *find(const struct stats *s, const char *tag)
{
    return s->count > 1 ? bsearch(&tag, s->tags + 1, s->count - 1, sizeof *s->tags, order_names)
                        : NULL;
}

static void count_row(struct stats *s, struct stats_tag *t, const struct minute_row *row)
{
    size_t step = (size_t)((row->at - s->from_at) / s->step_ms);

    if (step >= s->step_count)
        return;
    if (!t->steps)
        t->steps = mem_zero(s->step_count, sizeof *t->steps);
    counts_add(&t->steps[step], &row->counts);
    counts_add(&t->sum, &row->counts);
}

static void take_tags(struct stats *s, struct tag_info *infos, size_t count, size_t more)
{
    s->tags = mem_zero(1 + count + more, sizeof *s->tags);
    s->count = 1 + count;
    s->tags[0].info.late_from_at = TASK_TIME_NONE;
    for (size_t i = 0; i < count; i++) {
        s->tags[i + 1].info = infos[i];
        stats_add(&s->tags[0].info, &infos[i]);
    }
    free(infos);
}

/* Adds the tags that have counts, but no tasks any more. */
static void add_tags(struct stats *s, const struct minute_answer *a)
{
    MEM_LOCAL const char **names = mem_alloc((a->count + 1) * sizeof *names);
    size_t count = 0;

    for (size_t i = 0; i < a->count; i++)
        if (!find(s, a->rows[i].tag))
            names[count++] = a->rows[i].tag;
    if (count)
        qsort(names, count, sizeof *names, order_names);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || strcmp(names[i], names[i - 1]) != 0)
            s->tags[s->count++].info =
                (struct tag_info){.tag = mem_strdup(names[i]), TAG_INFO_NONE};
    qsort(s->tags + 1, s->count - 1, sizeof *s->tags, order_names);
}

static void take_rows(struct stats *s, const struct minute_answer *a)
{
    for (size_t i = 0; i < a->count; i++) {
        struct stats_tag *t = find(s, a->rows[i].tag);

        if (t)
            count_row(s, t, &a->rows[i]);
        count_row(s, &s->tags[0], &a->rows[i]);
    }
}

int stats_read(struct db *db, const struct stats_ask *ask, struct stats *ret, struct err *err)
{
    struct minute_answer a = {0};
    struct stats s = {.step_ms = ask->step_ms};
    struct tag_info *infos;
    size_t count;
    int rc = minute_store_read(
        db, &(struct minute_ask){ask->tag_glob, ask->since_ms, ask->step_ms, ask->align_ms}, &a,
        err);

    if (rc == 0)
        rc = fleet_list_tags(ask->fleet, db, ask->tag_glob, &ask->how, &infos, &count, &s.now_at,
                             err);
    if (rc == 0) {
        s.from_at = a.from_at;
        s.step_count = (size_t)((a.now_at - a.from_at) / s.step_ms) + 1;
        take_tags(&s, infos, count, a.count);
        add_tags(&s, &a);
        take_rows(&s, &a);
        for (size_t i = 0; i < s.count; i++) {
            s.tags[i].of = ret;
            s.tags[i].elapsed_ms = stats_elapsed_ms(&s);
        }
        *ret = s;
    }
    minute_store_free(a.rows, a.count);
    return rc;
}

void stats_done(struct stats *s)
{
    for (size_t i = 0; i < s->count; i++) {
        limit_store_tag_done(&s->tags[i].info);
        free(s->tags[i].steps);
    }
    free(s->tags);
    *s = (struct stats){0};
}
