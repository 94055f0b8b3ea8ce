/*
 * limit.c - see limit.h. The cases are in test/data/limits.tbl.
 */
#include "base/limit.h"
#include "base/task.h"
#include "base/when.h"

#include <inttypes.h>
#include <sys/param.h>

struct limit_answer limit_ask(const struct limit *l, uint64_t running, int64_t now_at)
{
    if (l->paused_until_at != TASK_TIME_NONE && l->paused_until_at > now_at)
        return (struct limit_answer){0, LIMIT_PAUSED, l->paused_until_at};
    if (!l->running)
        return (struct limit_answer){UINT64_MAX, LIMIT_OPEN, now_at};
    if (running >= l->running)
        return (struct limit_answer){0, LIMIT_RUNNING, INT64_MAX};
    return (struct limit_answer){l->running - running, LIMIT_OPEN, now_at};
}

uint32_t limit_join(uint32_t a, uint32_t b)
{
    return a && b ? MAX(a, b) : 0;
}

/* A list that is drawn each second shows no part of one. */
static void put_pause(struct buf *b, const struct limit *l, int64_t again_at, int64_t now_at)
{
    char text[WHEN_TEXT_SIZE];

    if (again_at == INT64_MAX)
        buf_str(b, "paused until resumed");
    else
        buf_printf(b, "paused for %s",
                   when_format_rough(text, (again_at - now_at) / WHEN_SECOND * WHEN_SECOND));
    if (l->reason)
        buf_printf(b, ": %s", l->reason);
}

void limit_put(struct buf *b, const struct limit *l, const struct limit_answer *a, int64_t now_at)
{
    if (a->why == LIMIT_PAUSED)
        put_pause(b, l, a->again_at, now_at);
    else if (a->why == LIMIT_RUNNING)
        buf_printf(b, "global_max_running %" PRIu32 " is full", l->running);
    else if (a->why == LIMIT_LOCKED)
        buf_str(b, LIMIT_LOCKED_TEXT);
}
