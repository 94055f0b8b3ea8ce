/*
 * schedules.c - see schedules.h.
 */
#include "cli/judge/schedules.h"

#include "base/when.h"

#include <sys/param.h>

#define ALARM_LEAST_MS (5 * WHEN_MINUTE)

/* The first slot since the last success. A gap has one when its run has ended. */
static bool first_slot(const struct schedule *s, const struct timetable *t, int64_t *ret_at)
{
    int64_t from_at = MAX(s->update_at, s->create_at);
    /* of older runs, only the last one is kept */
    int64_t done_at = s->status == TASK_DONE ? s->last_at : s->done_at;

    if (s->kind != TIMETABLE_GAP)
        return timetable_next(t, MAX(from_at, done_at), ret_at, NULL);
    *ret_at = s->status == TASK_DONE && s->finished_at != TASK_TIME_NONE
                  ? s->finished_at + timetable_period_ms(t, 0)
                  : MAX(from_at, s->last_at);
    return true;
}

bool schedules_put_alarm(struct buf *b, const struct schedule *s, int64_t now_at)
{
    char ago[WHEN_TEXT_SIZE], slot[WHEN_TEXT_SIZE];
    struct err none;
    int64_t at;

    if (s->paused_at != TASK_TIME_NONE)
        return false;
    if (s->status == TASK_FAILED || s->status == TASK_CANCELLED) {
        buf_printf(b, "the last run of %s %s%s%s", s->name,
                   s->status == TASK_FAILED ? "failed" : "was cancelled", s->error ? ": " : "",
                   s->error ? s->error : "");
        return true;
    }
    struct timetable *t = schedule_row_timetable(s, &none);
    if (!t) {
        buf_printf(b, "%s: %s", s->name, none.text);
        return true;
    }
    bool over = false;
    if (first_slot(s, t, &at)) {
        int64_t after_ms =
            s->alarm_after_ms ? s->alarm_after_ms : MAX(timetable_period_ms(t, at), ALARM_LEAST_MS);
        over = now_at - at >= after_ms;
    }
    timetable_free(t);
    if (over)
        buf_printf(b, "%s has not succeeded since its slot of %s, %s ago", s->name,
                   when_format_local(slot, at), when_format_rough(ago, now_at - at));
    return over;
}
