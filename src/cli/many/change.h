/*
 * change.h - what cancel, retry, reschedule, run-now and delete have in common: tasks by id or by
 * filter, asking, reporting.
 */
#ifndef DQ_CLI_MANY_CHANGE_H
#define DQ_CLI_MANY_CHANGE_H

#include "cli/line/select.h"

struct task_change;
struct task_changed;
struct targets;
struct event_act;

struct change_values {
    struct select_values select;
    int64_t limit, over_ms, retry_for_ms;
    bool dry_run, ask, yes;
};
/* clang-format off */
#define CHANGE_OPTIONS(type, prefix)                                                                                          \
    SELECT_OPTIONS(type, prefix select.),                                                                                     \
    {"limit", 'n', CMD_COUNT, offsetof(type, prefix limit), "N", "at most N of the tasks that match, those due first", NULL, 1}, \
    {"dry-run", 0, CMD_FLAG, offsetof(type, prefix dry_run), NULL, "show what would be changed, and change nothing", NULL, 0},                          \
    CMD_RETRY_FOR(offsetof(type, prefix retry_for_ms)),                                                                        \
    {"ask", 0, CMD_FLAG, offsetof(type, prefix ask), NULL, "ask for confirmation, also for one task", NULL, 0},                 \
    {"yes", 'y', CMD_FLAG, offsetof(type, prefix yes), NULL, "do not ask for confirmation", NULL, 0}
/* For verbs that give tasks a time. */
#define CHANGE_OVER(type, prefix)                                                                                             \
    {"over", 0, CMD_DURATION, offsetof(type, prefix over_ms), "D", "spread the tasks evenly over D", NULL, 0}
/* clang-format on */

struct change_request {
    const struct task_change *change; /* NULL: delete */
    unsigned from;                    /* states that allow it */
    unsigned by_default;              /* of these, what a filter without --status means */
    const char *verb, *past;          /* "cancel", "cancelled" */
};
/* Changes the tasks that the operands name or, without operands, those that match the filter. Each
 * id that cannot be changed is reported on a line of its own, and the exit status is then 1; the
 * others are changed. If a filter matches more than one task, asks for confirmation, or requires -y
 * if there is no terminal. An interrupt ends the work after the step at hand. */
int change_run(struct cmd_context *c, const struct change_values *v, const struct change_request *r,
               struct err *err) __attribute__((warn_unused_result));

/* Makes a change of these tasks (NULL: deletes them) in steps, with a bar of progress, and names
 * those that cannot be changed. past: "cancelled". An interrupt ends it after the step at hand:
 * ERR_TRANSIENT. *ret, which is all zero, is set to what was done, also after an error. */
int change_apply(struct cmd_context *c, const struct targets *x, const struct task_change *change,
                 struct event_act *act, const char *past, struct task_changed *ret, struct err *err)
    __attribute__((warn_unused_result));

/* Help that all of them share. */
/* clang-format off */
#define CHANGE_DETAILS                                                                                                           \
    "The operand - reads ids from standard input. An id that does not exist or is in another state is reported, and the exit "   \
    "status is then 1; the others are processed. If a filter matches more than one task, asks for confirmation; without a "      \
    "terminal, -y is required."
/* clang-format on */

#endif
