/*
 * timetable.c - see timetable.h.
 */
#include "base/timetable.h"

#include "base/civil.h"
#include "base/mem.h"
#include "base/task.h"
#include "base/when.h"
#include "base/when_parse.h"

#include <stdlib.h>
#include <string.h>

struct timetable {
    enum timetable_kind kind;
    int64_t from_at, to_at; /* TASK_TIME_NONE: no bound */
    int64_t period_ms;
};

struct timetable *timetable_new(const struct timetable_spec *spec, struct err *err)
{
    struct timetable *t = mem_zero(1, sizeof *t);

    *t = (struct timetable){.kind = spec->kind, .from_at = spec->from_at, .to_at = spec->to_at};
    if (t->kind == TIMETABLE_CRON) {
        err_set(err, ERR_DATA, "cron \"%s\": not understood yet", spec->expression);
        goto failed;
    }
    if (when_parse_duration(spec->expression, &t->period_ms, err))
        goto failed;
    if (t->kind == TIMETABLE_EVERY && t->period_ms < WHEN_SECOND) {
        err_set(err, ERR_DATA, "every \"%s\": at least 1s", spec->expression);
        goto failed;
    }
    return t;
failed:
    timetable_free(t);
    return NULL;
}

void timetable_free(struct timetable *t)
{
    free(t);
}

bool timetable_next(const struct timetable *t, int64_t after_at, int64_t *ret_at,
                    enum timetable_shift *ret_shift)
{
    if (t->kind != TIMETABLE_EVERY)
        return false;
    int64_t anchor = t->from_at == TASK_TIME_NONE ? 0 : t->from_at;
    if (t->from_at != TASK_TIME_NONE && after_at < t->from_at)
        after_at = t->from_at - 1;
    int64_t at = anchor + (civil_floor_div(after_at - anchor, t->period_ms) + 1) * t->period_ms;
    if (at > WHEN_AT_MAX || (t->to_at != TASK_TIME_NONE && at > t->to_at))
        return false;
    *ret_at = at;
    if (ret_shift)
        *ret_shift = TIMETABLE_AS_WRITTEN;
    return true;
}

int64_t timetable_period_ms(const struct timetable *t, int64_t at)
{
    (void)at;
    return t->period_ms;
}

void timetable_put(struct buf *b, const struct timetable *t)
{
    char text[WHEN_TEXT_SIZE];
    buf_printf(b, "every %s", when_format_duration(text, t->period_ms));
}

const char *timetable_zone_version(void)
{
    return "";
}

uint64_t timetable_zone_digest(const struct timetable *t)
{
    (void)t;
    return 0;
}
