/*
 * cmd_run_now.c - dq run-now: pending tasks become due at once.
 */
#include "cli/line/verbs.h"
#include "cli/many/change.h"

static int run(struct cmd_context *c, const void *values, struct err *err)
{
    const struct change_request request = {TASK_RESCHEDULE, 0, "run", "made due now", false};
    return change_run(c, values, &request, err);
}

static const struct cmd_option options[] = {
    CHANGE_OVER,
    CHANGE_OPTIONS,
};

const struct cmd cmd_run_now = {
    .name = "run-now",
    .group = "change",
    .summary = "make pending tasks due at once",
    .usage = "ID... [--over D]\n[FILTER]... [--over D] [--dry-run] [-y]",
    .details =
        "A task that expires does not any more. To run finished tasks again, use dq retry.\n" CHANGE_DETAILS,
    CMD_OPTIONS(options),
    .values_size = sizeof(struct change_values),
    .max_operands = -1,
    .level = CMD_SCHEMA,
    .formats = OUT_NO_ID,
    .examples = "dq run-now 17\n"
                "dq run-now -t report.daily",
    .run = run,
};
