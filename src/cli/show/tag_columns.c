/*
 * tag_columns.c - see tag_columns.h.
 */
#include "cli/show/tag_columns.h"

#include "cli/show/task_columns.h"
#include "store/ask/tag_store.h"

#define TAG ((const struct tag_info *)row)
#define GETTER(name)                                                                               \
    void tag_get_##name(const void *row, const void *arg __attribute__((unused)), struct cell *ret)

static void set_count(struct cell *ret, const struct tag_info *t, int status)
{
    cell_set_number(ret, t->count[status]);
    ret->sampled = t->sampled[status];
    ret->colour = t->count[status] ? task_status_colour(status) : CELL_DIM;
}

GETTER(pending)
{
    set_count(ret, TAG, TASK_PENDING);
}

GETTER(running)
{
    set_count(ret, TAG, TASK_RUNNING);
}

GETTER(done)
{
    set_count(ret, TAG, TASK_DONE);
}

GETTER(failed)
{
    set_count(ret, TAG, TASK_FAILED);
}

GETTER(cancelled)
{
    set_count(ret, TAG, TASK_CANCELLED);
}

GETTER(late)
{
    cell_set_since(ret, TAG->late_from_at);
    ret->sampled = TAG->late_sampled;
}

GETTER(sampled)
{
    ret->kind = CELL_BOOL;
    ret->number = TAG->due_sampled || TAG->late_sampled;
    for (int s = 0; s < TASK_STATUS_COUNT; s++)
        ret->number |= TAG->sampled[s];
}

GETTER(due)
{
    cell_set_number(ret, TAG->due);
    ret->sampled = TAG->due_sampled;
}
