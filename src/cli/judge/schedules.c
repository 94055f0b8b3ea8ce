/*
 * schedules.c - see schedules.h.
 */
#include "cli/judge/schedules.h"

#include "base/mem.h"
#include "base/text.h"
#include "base/when.h"

#include <inttypes.h>
#include <stdlib.h>
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

/* It was decided, or set, while the server's clock was ahead. A gap has no record of that if its
 * run lived then. */
static bool is_ahead(const struct schedule *s, const struct timetable *t, int64_t now_at)
{
    const int64_t most_at = now_at + WHEN_MINUTE;

    return MAX(MAX(s->last_at, s->decided_at), s->update_at) > most_at ||
           (s->kind == TIMETABLE_GAP &&
            s->next_at > MAX(most_at + timetable_period_ms(t, now_at), s->from_at));
}

bool schedules_put_alarm(struct buf *b, const struct schedule *s, const struct fleet *fleet,
                         int64_t now_at)
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
    bool over = false, ahead = is_ahead(s, t, now_at);
    if (!ahead && first_slot(s, t, &at)) {
        int64_t after_ms =
            s->alarm_after_ms ? s->alarm_after_ms : MAX(timetable_period_ms(t, at), ALARM_LEAST_MS);
        over = now_at - at >= after_ms;
    }
    timetable_free(t);
    if (ahead)
        buf_printf(
            b,
            "%s was decided while the server's clock was ahead: a live dqd whose host's clock"
            " agrees with it corrects what is more than a day ahead",
            s->name);
    else if (over)
        buf_printf(b, "%s has not succeeded since its slot of %s, %s ago", s->name,
                   when_format_local(slot, at), when_format_rough(ago, now_at - at));
    else if (fleet->alive && fleet_serves(fleet, s->tag, NULL) == FLEET_SERVES_NOT)
        buf_printf(b, "no dqd serves %s, the tag of schedule %s", s->tag, s->name);
    return b->len > 0;
}

/* The verb of dq schedule, for this one. */
static void help(struct why *w, const char *verb, const struct schedule *s)
{
    BUF_LOCAL struct buf word = BUF_INIT;

    text_shell_word(&word, s->name);
    why_lines_help(w, mem_printf("dq schedule %s %s", verb, word.data));
}

void schedules_why(const struct schedule *s, const struct fleet *fleet, int64_t now_at,
                   struct why *ret)
{
    const bool live = s->task_id && (s->status == TASK_PENDING || s->status == TASK_RUNNING);
    char at[WHEN_TEXT_SIZE], in[WHEN_TEXT_SIZE];
    BUF_LOCAL struct buf alarm = BUF_INIT;

    *ret = (struct why){0};
    if (s->paused_at != TASK_TIME_NONE) {
        why_lines_add(&ret->causes, "paused",
                      mem_printf("%s has paused it at %s%s%s",
                                 s->paused_by ? s->paused_by : "somebody",
                                 when_format_local(at, s->paused_at), s->pause_reason ? ": " : "",
                                 s->pause_reason ? s->pause_reason : ""));
        help(ret, "resume", s);
    }
    if (!fleet->alive)
        why_lines_add(&ret->causes, "no_dqd", mem_strdup("no dqd is alive"));
    if (schedules_put_alarm(&alarm, s, fleet, now_at)) {
        why_lines_add(&ret->causes, "alarm", buf_take(&alarm));
        help(ret, "show", s);
    }
    if (live) {
        why_lines_add(&ret->causes, "overlap",
                      mem_printf("its last run, task %" PRIu64 ", is %s", s->task_id,
                                 task_status_name(s->status)));
        why_lines_add(&ret->remedies, NULL, mem_printf("dq why %" PRIu64, s->task_id));
    }
    if (s->next_at == TASK_TIME_NONE)
        why_lines_add(&ret->causes, "over", mem_strdup("it has no more slots"));
    else
        why_lines_add(&ret->causes, "not_due",
                      mem_printf("its next slot is %s, %s%s", when_format_local(at, s->next_at),
                                 s->next_at > now_at ? "in " : "due for ",
                                 when_format_rough(in, llabs(s->next_at - now_at))));
    if (s->next_at != TASK_TIME_NONE && s->paused_at == TASK_TIME_NONE && !live)
        help(ret, "run-now", s);
}
