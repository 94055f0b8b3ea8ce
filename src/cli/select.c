/*
 * select.c - from options to a task filter.
 */
#include "cli/select.h"

bool select_given(const struct select_values *v)
{
    return v->tag || v->key || v->due_before.text || v->due_after.text || v->since.text;
}

int select_filter(struct cmd_context *c, const struct select_values *v, unsigned by_default,
                  struct task_filter *ret, struct err *err)
{
    struct task_filter f = {
        .tag_glob = v->tag,
        .key = v->key,
        .statuses = v->statuses ? v->statuses : by_default,
        .due_before_at = TASK_TIME_NONE,
        .due_after_at = TASK_TIME_NONE,
        .since_at = TASK_TIME_NONE,
    };
    int rc = cmd_resolve(c, &v->due_before, &f.due_before_at, err);
    if (rc == 0)
        rc = cmd_resolve(c, &v->due_after, &f.due_after_at, err);
    if (rc == 0)
        rc = cmd_resolve(c, &v->since, &f.since_at, err);
    if (rc == 0)
        *ret = f;
    return rc;
}

void select_put_statuses(struct buf *b, unsigned statuses)
{
    for (int s = 0; s < TASK_STATUS_COUNT; s++) {
        if (!(statuses & TASK_BIT(s)))
            continue;
        statuses &= ~TASK_BIT(s);
        buf_str(b, task_status_name(s));
        if (statuses != 0)
            buf_str(b, statuses & (statuses - 1) ? ", " : " or ");
    }
}
