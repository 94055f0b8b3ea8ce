/*
 * task_columns.c - see task_columns.h. One function for each column that is no field.
 */
#include "cli/show/task_columns.h"

#include "store/ask/tag_store.h"

#define TASK ((const struct task *)row)

enum cell_colour task_status_colour(int status)
{
    static const enum cell_colour colours[TASK_STATUS_COUNT] = {[TASK_PENDING] = CELL_PLAIN,
                                                                [TASK_DONE] = CELL_GOOD,
                                                                [TASK_FAILED] = CELL_BAD,
                                                                [TASK_RUNNING] = CELL_BUSY,
                                                                [TASK_CANCELLED] = CELL_DIM};
    return status >= 0 && status < TASK_STATUS_COUNT ? colours[status] : CELL_PLAIN;
}

/* arg: struct task_columns_arg, or NULL. */
static void get_status(const void *row, const void *arg, struct cell *ret)
{
    const struct task_columns_arg *a = arg;
    cell_set_text(ret, task_status_name(TASK->status));
    ret->colour = task_status_colour(TASK->status);
    if (a && a->paused) {
        ret->people = "paused";
        ret->colour = CELL_WARN;
    }
}

OUT_GETTER(due_in)
{
    if (TASK->status == TASK_PENDING)
        cell_set_until(ret, TASK->expected_at);
}

OUT_GETTER(late)
{
    const int64_t from_at = task_late_from(TASK);
    if (TASK->status == TASK_PENDING)
        cell_set_since(ret, from_at);
    else if (TASK->execution_at != TASK_TIME_NONE && TASK->execution_at >= from_at)
        cell_set_duration(ret, TASK->execution_at - from_at);
}

OUT_GETTER(took)
{
    if (TASK->status == TASK_RUNNING) {
        cell_set_since(ret, TASK->execution_at);
        ret->colour = CELL_PLAIN;
    } else if ((TASK->status == TASK_DONE || TASK->status == TASK_FAILED) &&
               TASK->execution_at != TASK_TIME_NONE && TASK->finish_at >= TASK->execution_at) {
        cell_set_duration(ret, TASK->finish_at - TASK->execution_at);
    }
}

#define COLUMN_ROW(name, ...) COLUMN(task, __VA_ARGS__),
#define COLUMN_NUMBER(name, ...) NUMBER_##name,
enum { TASK_COLUMNS(COLUMN_NUMBER) NUMBERS };
const struct column task_columns[] = {TASK_COLUMNS(COLUMN_ROW)};
const size_t task_column_count = NUMBER_AGAIN_BODY, task_column_total = NUMBERS;

/* ---- the counts of a tag ---- */

#define TAG ((const struct tag_info *)row)
#define GETTER(name)                                                                               \
    void tag_get_##name(const void *row, const void *arg __attribute__((unused)), struct cell *ret)

#define COUNT(name, status)                                                                        \
    GETTER(name)                                                                                   \
    {                                                                                              \
        cell_set_number(ret, TAG->count[status]);                                                  \
        ret->sampled = TAG->sampled[status];                                                       \
        ret->colour = TAG->count[status] ? task_status_colour(status) : CELL_DIM;                  \
    }
COUNT(pending, TASK_PENDING)
COUNT(running, TASK_RUNNING)
COUNT(done, TASK_DONE)
COUNT(failed, TASK_FAILED)
COUNT(cancelled, TASK_CANCELLED)

GETTER(late)
{
    cell_set_since(ret, TAG->late_from_at);
    ret->sampled = TAG->late_sampled;
}

GETTER(sampled)
{
    cell_set_bool(ret, TAG->due_sampled || TAG->late_sampled);
    for (int s = 0; s < TASK_STATUS_COUNT; s++)
        ret->number |= TAG->sampled[s];
}

GETTER(due)
{
    cell_set_number(ret, TAG->due);
    ret->sampled = TAG->due_sampled;
}
