/*
 * cmd_change.c - dq cancel, retry, reschedule, run-now and delete: one run (cli/many/change.h), and
 * a row for each.
 *
 * Pending and running tasks become cancelled; the owner of a running one kills its handler.
 * Finished tasks become pending again, with a new ladder, or go away, with their attempts. Pending
 * tasks get another time, or become due at once.
 */
#include "cli/line/verbs.h"
#include "cli/many/change.h"

/* request: as struct change_request has it. */
#define CHANGE(...)                                                                                \
    .max_operands = -1, .formats = OUT_NO_ID, .run = change_run,                                   \
    .request = &(const struct change_request)                                                      \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

static const struct cmd_option plain[] = {CHANGE_OPTIONS};
static const struct cmd_option spread[] = {CHANGE_OVER, CHANGE_OPTIONS};
static const struct cmd_option timed[] = {CHANGE_WHEN, CHANGE_OVER, CHANGE_OPTIONS};

const struct cmd cmd_cancel = {
    .name = "cancel",
    CHANGE(TASK_CANCEL, 0, "cancel", "cancelled", false),
    CMD_OPTIONS(plain, change_values),
};

const struct cmd cmd_retry = {
    .name = "retry",
    CHANGE(TASK_RETRY, TASK_BIT(TASK_FAILED), "retry", "retried", false),
    CMD_OPTIONS(timed, change_values),
    .exclusive = "in at",
};

const struct cmd cmd_reschedule = {
    .name = "reschedule",
    CHANGE(TASK_RESCHEDULE, 0, "reschedule", "rescheduled", true),
    CMD_OPTIONS(timed, change_values),
    .exclusive = "in at",
};

const struct cmd cmd_run_now = {
    .name = "run-now",
    CHANGE(TASK_RESCHEDULE, 0, "run", "made due now", false),
    CMD_OPTIONS(spread, change_values),
};

const struct cmd cmd_delete = {
    .name = "delete",
    .alias = "rm",
    CHANGE(CHANGE_DELETE, 0, "delete", "deleted", false),
    CMD_OPTIONS(plain, change_values),
};
