/*
 * tag_columns.c - see tag_columns.h.
 */
#include "cli/show/tag_columns.h"

#include "cli/show/task_columns.h"
#include "store/ask/tag_store.h"

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
