/*
 * schedule_columns.c - see schedule_columns.h. One function for each column that is no field.
 */
#include "cli/show/schedule_columns.h"

#include "cli/show/out.h"
#include "cli/show/task_columns.h"
#include "store/ask/schedule_store.h"

#define SCHEDULE ((const struct schedule *)row)

OUT_GETTER(kind)
{
    cell_set_text(ret, slot_kind_name(SCHEDULE->kind));
}

OUT_GETTER(catch_up)
{
    cell_set_text(ret, slot_catch_up_name(SCHEDULE->catch_up));
}

OUT_GETTER(overlap)
{
    cell_set_text(ret, slot_overlap_name(SCHEDULE->overlap));
}

OUT_GETTER(result)
{
    if (SCHEDULE->status >= 0) {
        cell_set_text(ret, task_status_name(SCHEDULE->status));
        ret->colour = task_status_colour(SCHEDULE->status);
    }
}

/* What has its default is not shown. */
#define DURATION(name)                                                                             \
    OUT_GETTER(name)                                                                               \
    {                                                                                              \
        if (SCHEDULE->name)                                                                        \
            cell_set_duration(ret, SCHEDULE->name);                                                \
    }
DURATION(spread_ms)
DURATION(within_ms)
DURATION(expires_ms)
DURATION(alarm_after_ms)

OUT_GETTER(took)
{
    if (SCHEDULE->finished_at != TASK_TIME_NONE && SCHEDULE->started_at != TASK_TIME_NONE)
        cell_set_duration(ret, SCHEDULE->finished_at - SCHEDULE->started_at);
}

OUT_GETTER(late)
{
    int64_t ms;
    if (schedule_row_late(SCHEDULE, &ms))
        cell_set_duration(ret, ms);
}

OUT_GETTER(state)
{
    const bool live = SCHEDULE->status == TASK_RUNNING || SCHEDULE->status == TASK_PENDING;
    const char *state = SCHEDULE->paused_at != TASK_TIME_NONE ? "paused"
                        : live                                ? task_status_name(SCHEDULE->status)
                        : SCHEDULE->next_at == TASK_TIME_NONE ? "over"
                                                              : "waiting";
    cell_set_text(ret, state);
    ret->colour = SCHEDULE->paused_at != TASK_TIME_NONE ? CELL_WARN : live ? CELL_BUSY : CELL_PLAIN;
}

#define SHOWN(sql, ...) COLUMN(schedule, NULL, __VA_ARGS__),
/* clang-format off */
const struct column schedule_columns[] = {
    SCHEDULE_ROW_SET(SHOWN)
    OUT_FIELD(schedule, "paused", TIME, paused_at, 0),
    OUT_FIELD(schedule, "paused_by", TEXT, paused_by, 0),
    OUT_FIELD(schedule, "pause_reason", TEXT, pause_reason, 60),
    OUT_FIELD(schedule, "next", TIME, next_at, 0),
    OUT_FIELD(schedule, "last", TIME, last_at, 0),
    SCHEDULE_ROW_RUNS(SHOWN)
    OUT_GET("took", MS, 0, get_took),
    OUT_GET("late", MS, 0, get_late),
    OUT_GET("state", TEXT, 0, get_state),
};
/* clang-format on */
const size_t schedule_column_count = sizeof schedule_columns / sizeof schedule_columns[0];
