/*
 * select.c - from options to a task filter.
 */
#include "cli/line/select.h"

const struct cmd_option select_filters[] = {SELECT_OPTIONS(struct select_values, )};
const size_t select_filter_count = sizeof select_filters / sizeof select_filters[0];

bool select_given(const struct select_values *v)
{
    bool any = v->tag || v->key || v->error || v->host || v->body;
    for (int t = 0; t < TASK_FILTER_TIMES; t++)
        any = any || v->since[t].text || v->before[t].text;
    return any;
}

static int bound(struct cmd_context *c, const struct cmd_when *when, struct task_filter_bound *ret,
                 struct err *err)
{
    ret->set = !!when->text;
    return cmd_resolve(c, when, &ret->at, err);
}

int select_filter(struct cmd_context *c, const struct select_values *v, unsigned by_default,
                  struct task_filter *ret, struct err *err)
{
    struct task_filter f = {
        .tag_glob = v->tag,
        .key = v->key,
        .error_glob = v->error,
        .host_glob = v->host,
        .body = v->body,
        .statuses = v->statuses ? v->statuses : by_default,
    };
    int rc = 0;
    if (v->body && *v->body == '\0') /* a variable that is not set, in a script */
        return err_set(err, ERR_USAGE, "--body is empty and would match every task");
    for (int t = 0; rc == 0 && t < TASK_FILTER_TIMES; t++) {
        rc = bound(c, &v->since[t], &f.since[t], err);
        if (rc == 0)
            rc = bound(c, &v->before[t], &f.before[t], err);
    }
    if (rc == 0)
        *ret = f;
    return rc;
}

void select_note_unordered(const struct cmd_context *c, bool unordered)
{
    if (unordered)
        cmd_note(
            c, "an import or a wrong clock broke the order of ids: --since had to read all tasks");
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
