/*
 * env.c - makes the environment of a process: the handler's variables, and DQ_* about the task.
 *
 * Invariant: variables about the task are set even if they are empty, but those about a slot only
 * for tasks of schedules.
 */
#include "runner/env.h"

#include "base/mem.h"
#include "base/slot.h"
#include "base/when.h"
#include "runner/job.h"
#include "runner/plan.h"

#include <string.h>

#define TASK_VARS_MAX 11

static void put(struct buf *b, const char *name, const char *value)
{
    buf_str(b, name);
    buf_chr(b, '=');
    buf_add(b, value, strlen(value) + 1);
}

static void put_number(struct buf *b, const char *name, uint64_t value)
{
    buf_str(b, name);
    buf_chr(b, '=');
    buf_u64(b, value);
    buf_chr(b, 0);
}

static void put_slot(struct buf *b, const struct job *j)
{
    size_t name;
    const char *slot = slot_in_key(j->order.key, &name);

    if (!slot)
        return;
    buf_str(b, "DQ_SCHEDULE=");
    buf_add(b, j->order.key, name);
    buf_chr(b, 0);
    put(b, "DQ_SLOT", slot);
    put_number(b, "DQ_MISSED", j->order.slots - 1);
}

static void put_task(struct buf *b, const struct job *j)
{
    char due[WHEN_TEXT_SIZE];

    put_number(b, "DQ_ID", j->ids[0]);
    buf_str(b, "DQ_RUN_ID=");
    task_put_run_id(b, j->ids[0], j->order.run);
    buf_chr(b, 0);
    put(b, "DQ_KEY", j->order.key ? j->order.key : "");
    put_number(b, "DQ_ATTEMPT", j->order.attempt);
    put_number(b, "DQ_MAX_ATTEMPTS", j->order.max_attempts);
    put(b, "DQ_EXPECTED_TIME", when_format_utc(due, j->order.expected_at));
    put_number(b, "DQ_TOKEN", j->order.token);
    if (j->order.slots)
        put_slot(b, j);
}

char *const *env_make(struct env_room *room, const struct job *j, const struct setup *setup)
{
    struct buf *b = &room->text;
    size_t n = setup->env_count;

    buf_reset(b);
    if (j)
        put(b, "DQ_TAG", j->order.tag);
    if (j && j->plan->contract->lines)
        put_number(b, "DQ_BATCH", j->order.count);
    else if (j)
        put_task(b, j);

    if (room->cap < n + TASK_VARS_MAX + 1)
        room->vars = mem_resize(room->vars, room->cap = n + TASK_VARS_MAX + 1, sizeof *room->vars);
    memcpy(room->vars, setup->env, n * sizeof *room->vars);
    for (char *s = b->data; s < b->data + b->len; s += strlen(s) + 1)
        room->vars[n++] = s;
    room->vars[n] = NULL;
    return room->vars;
}
