/*
 * timetable.c - see timetable.h.
 *
 * The clock of a zone is a line of segments, in each of which its distance from UTC is constant. A
 * cron expression is searched in the local times of one segment after the other, so months in which
 * nothing matches cost nothing, and no minute is tried.
 */
#include "base/timetable.h"

#include "base/civil.h"
#include "base/cron.h"
#include "base/mem.h"
#include "base/task.h"
#include "base/when.h"
#include "base/when_parse.h"
#include "base/zone.h"
#include "base/zone_names.h"

#include <stdlib.h>
#include <sys/param.h>

/* cron.c of Debian's cron: a larger change is a correction of the clock, and the new time counts at
 * once. Forward, it counts one minute more. */
#define BACK_MAX (3 * WHEN_HOUR)
#define FORWARD_BELOW (3 * WHEN_HOUR)

struct timetable {
    enum timetable_kind kind;
    int64_t from_at, to_at; /* TASK_TIME_NONE: no bound */
    int64_t period_ms;      /* EVERY, GAP */
    struct cron cron;
    char *zone_name;
    struct zone *zone; /* NULL: UTC */
};

static int read_expression(struct timetable *t, const char *text, struct err *err)
{
    if (t->kind == TIMETABLE_CRON)
        return cron_parse(text, &t->cron, err);
    if (when_parse_duration(text, &t->period_ms, err))
        return ERR_DATA;
    if (t->period_ms < WHEN_SECOND)
        return err_set(err, ERR_DATA, "%s \"%.40s\": a schedule's distance is at least 1s",
                       t->kind == TIMETABLE_EVERY ? "every" : "gap", text);
    return 0;
}

struct timetable *timetable_new(const struct timetable_spec *spec, struct err *err)
{
    struct timetable *t = mem_zero(1, sizeof *t);
    char from[WHEN_TEXT_SIZE], to[WHEN_TEXT_SIZE];

    t->kind = spec->kind;
    t->from_at = spec->from_at;
    t->to_at = spec->to_at;
    t->zone_name = mem_strdup(spec->zone ? spec->zone : "UTC");
    if (read_expression(t, spec->expression, err) || zone_names_load(t->zone_name, &t->zone, err))
        goto failed;
    if (t->from_at != TASK_TIME_NONE && t->to_at != TASK_TIME_NONE && t->to_at <= t->from_at) {
        err_set(err, ERR_DATA, "a schedule from %s to %s has no time: the end must be later",
                when_format_utc(from, t->from_at), when_format_utc(to, t->to_at));
        goto failed;
    }
    return t;
failed:
    timetable_free(t);
    return NULL;
}

void timetable_free(struct timetable *t)
{
    if (t) {
        zone_free(t->zone);
        free(t->zone_name);
    }
    free(t);
}

/* ---- slots, without bounds */

static int64_t offset_at(const struct timetable *t, int64_t at)
{
    return t->zone ? zone_offset(t->zone, at) : 0;
}

static bool next_every(const struct timetable *t, int64_t after_at, int64_t *ret_at)
{
    int64_t anchor = t->from_at == TASK_TIME_NONE ? 0 : t->from_at;

    *ret_at = anchor + (civil_floor_div(after_at - anchor, t->period_ms) + 1) * t->period_ms;
    return *ret_at <= WHEN_AT_MAX;
}

/* A segment: from begin_at to before end_at, the clock is `offset` ahead of UTC; before it, it was
 * `previous` ahead. */
struct segment {
    int64_t begin_at, end_at, offset, previous;
};

static bool is_set_back(int64_t previous, int64_t offset)
{
    return offset < previous && previous - offset <= BACK_MAX;
}

/* Whether fixed times fall into the gap before s: they come at its begin. */
static bool in_gap(const struct timetable *t, const struct segment *s, enum timetable_shift *ret)
{
    int64_t local = s->begin_at + s->offset, found;

    if (s->offset <= s->previous || s->offset - s->previous >= FORWARD_BELOW ||
        !cron_next(&t->cron, s->begin_at + s->previous, &found) || found > local)
        return false;
    bool written = cron_next(&t->cron, local, &found) && found == local;
    *ret = written ? TIMETABLE_AS_WRITTEN : TIMETABLE_GAP_MOVED;
    return true;
}

/* The first slot in s that is after after_at. *ret_end: there is none in any segment. */
static bool next_in(const struct timetable *t, const struct segment *s, int64_t after_at,
                    int64_t *ret_at, enum timetable_shift *ret, bool *ret_end)
{
    bool fixed = !t->cron.elapsed;
    int64_t local = MAX(s->begin_at, after_at + 1) + s->offset;

    if (fixed && s->begin_at > after_at && in_gap(t, s, ret)) {
        *ret_at = s->begin_at;
        return true;
    }
    if (fixed && is_set_back(s->previous, s->offset)) /* these have been shown before */
        local = MAX(local, s->begin_at + s->previous);
    *ret_end = !cron_next(&t->cron, local, &local);
    if (*ret_end || local - s->offset >= s->end_at)
        return false;
    *ret_at = local - s->offset;
    *ret = TIMETABLE_AS_WRITTEN;
    if (fixed && s->end_at != INT64_MAX) {
        int64_t next = offset_at(t, s->end_at);
        if (is_set_back(s->offset, next) && local >= s->end_at + next)
            *ret = TIMETABLE_FIRST_OF_TWO;
    }
    return true;
}

static bool next_cron(const struct timetable *t, int64_t after_at, int64_t *ret_at,
                      enum timetable_shift *ret_shift)
{
    bool end = false;
    struct segment s = {.begin_at = after_at - BACK_MAX}; /* a change since then counts */

    s.offset = s.previous = offset_at(t, s.begin_at);
    while (!end && s.begin_at <= WHEN_AT_MAX) {
        s.end_at = t->zone ? zone_next_change(t->zone, s.begin_at) : INT64_MAX;
        if (next_in(t, &s, after_at, ret_at, ret_shift, &end))
            return *ret_at <= WHEN_AT_MAX;
        s = (struct segment){s.end_at, 0, offset_at(t, s.end_at), s.offset};
    }
    return false;
}

static bool next_slot(const struct timetable *t, int64_t after_at, int64_t *ret_at,
                      enum timetable_shift *ret_shift)
{
    after_at = MAX(after_at, WHEN_AT_MIN);
    *ret_shift = TIMETABLE_AS_WRITTEN;
    if (t->kind == TIMETABLE_GAP || after_at >= WHEN_AT_MAX)
        return false;
    return t->kind == TIMETABLE_EVERY ? next_every(t, after_at, ret_at)
                                      : next_cron(t, after_at, ret_at, ret_shift);
}

bool timetable_next(const struct timetable *t, int64_t after_at, int64_t *ret_at,
                    enum timetable_shift *ret_shift)
{
    enum timetable_shift shift;
    int64_t at;

    if (t->from_at != TASK_TIME_NONE)
        after_at = MAX(after_at, t->from_at - 1);
    if (!next_slot(t, after_at, &at, &shift) || (t->to_at != TASK_TIME_NONE && at > t->to_at))
        return false;
    *ret_at = at;
    if (ret_shift)
        *ret_shift = shift;
    return true;
}

/* Finds the last instant behind which the next slot is not after `at`: the slot is the millisecond
 * after it. */
int64_t timetable_period_ms(const struct timetable *t, int64_t at)
{
    enum timetable_shift shift;
    int64_t back = WHEN_MINUTE, next, slot;

    if (t->kind != TIMETABLE_CRON)
        return t->period_ms;
    at = MIN(MAX(at, WHEN_AT_MIN + 4000 * WHEN_DAY), WHEN_AT_MAX - 4000 * WHEN_DAY);
    while (back < 4000 * WHEN_DAY && (!next_slot(t, at - back, &slot, &shift) || slot > at))
        back *= 2;
    int64_t low = at - back, high = at;
    while (high - low > 1) {
        int64_t half = low + (high - low) / 2;
        bool before = next_slot(t, half, &slot, &shift) && slot <= at;
        *(before ? &low : &high) = half;
    }
    return next_slot(t, low, &slot, &shift) && next_slot(t, at, &next, &shift) ? next - slot
                                                                               : WHEN_DAY;
}

/* ---- what is shown */

void timetable_put(struct buf *b, const struct timetable *t)
{
    char text[WHEN_TEXT_SIZE], from[WHEN_TEXT_SIZE];

    when_format_duration(text, t->period_ms);
    if (t->kind == TIMETABLE_GAP) {
        buf_printf(b, "%s after the end of the last run", text);
    } else if (t->kind == TIMETABLE_EVERY) {
        when_format_ahead(from, t->from_at == TASK_TIME_NONE ? 0 : t->from_at, 0);
        buf_printf(b, "every %s, counted from %s", text, from);
    } else {
        cron_put(b, &t->cron);
        buf_printf(b, " (%s)", t->zone_name);
    }
}

const char *timetable_zone_version(void)
{
    return zone_names_version();
}

uint64_t timetable_zone_digest(const struct timetable *t)
{
    return t->zone ? zone_digest(t->zone) : 0;
}
