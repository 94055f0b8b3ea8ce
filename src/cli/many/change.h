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
    int64_t limit, over_ms, in_ms, retry_for_ms;
    struct cmd_when at;
    bool dry_run, ask, yes;
};
/* clang-format off */
#define CHANGE_FIELD(name) offsetof(struct change_values, name)
#define CHANGE_OPTIONS                                              \
    SELECT_OPTIONS(struct change_values, select.),                  \
    {"limit", 'n', CMD_COUNT, CHANGE_FIELD(limit), "N", NULL, 1},   \
    {"dry-run", 0, CMD_FLAG, CHANGE_FIELD(dry_run), NULL, NULL, 0}, \
    CMD_RETRY_FOR(CHANGE_FIELD(retry_for_ms)),                      \
    {"ask", 0, CMD_FLAG, CHANGE_FIELD(ask), NULL, NULL, 0},         \
    {"yes", 'y', CMD_FLAG, CHANGE_FIELD(yes), NULL, NULL, 0}
/* For verbs that give tasks a time, and for those that take it from the command line. */
#define CHANGE_OVER {"over", 0, CMD_DURATION, CHANGE_FIELD(over_ms), "D", NULL, 0}
#define CHANGE_WHEN                                                 \
    {"in", 'i', CMD_DURATION, CHANGE_FIELD(in_ms), "D", NULL, 0},   \
    {"at", 'a', CMD_INSTANT, CHANGE_FIELD(at), "TIME", NULL, 0}
/* clang-format on */

#define CHANGE_DELETE TASK_EVENT_COUNT
struct change_request {
    int event;               /* enum task_event, or CHANGE_DELETE */
    unsigned by_default;     /* states that a filter without --status means; 0: all allowed */
    const char *verb, *past; /* "cancel", "cancelled" */
    bool moves_expiry;       /* see struct task_change; a new time must then be given */
};
/* The run of a verb whose request this is: changes the tasks that the operands name or, without
 * operands, those that match the filter. Each id that cannot be changed is reported on a line of
 * its own, and the exit status is then 1; the others are changed. If a filter matches more than one
 * task, asks for confirmation, or requires -y if there is no terminal. An interrupt ends the work
 * after the step at hand. */
int change_run(struct cmd_context *c, struct err *err) __attribute__((warn_unused_result));

/* Makes a change of these tasks (NULL: deletes them) in steps, with a bar of progress, and names
 * those that cannot be changed. past: "cancelled". An interrupt ends it after the step at hand:
 * ERR_TRANSIENT. *ret, which is all zero, is set to what was done, also after an error. */
int change_apply(struct cmd_context *c, const struct targets *x, const struct task_change *change,
                 struct event_act *act, const char *past, struct task_changed *ret, struct err *err)
    __attribute__((warn_unused_result));

#endif
