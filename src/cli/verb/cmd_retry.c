/*
 * cmd_retry.c - dq retry: finished tasks become pending again, with a new ladder.
 */
#include "cli/line/verbs.h"
#include "cli/many/change.h"

static int run(struct cmd_context *c, const void *values, struct err *err)
{
    const struct change_request request = {TASK_RETRY, TASK_BIT(TASK_FAILED), "retry", "retried",
                                           false};
    return change_run(c, values, &request, err);
}

static const struct cmd_option options[] = {
    CHANGE_WHEN("due after D; default: at once"),
    CHANGE_OVER,
    CHANGE_OPTIONS,
};

const struct cmd cmd_retry = {
    .name = "retry",
    .group = "change",
    .summary = "run failed, cancelled or done tasks again, from attempt 1",
    .usage =
        "ID... [--in D | --at TIME] [--over D]\n[FILTER]... [--in D | --at TIME] [--over D] [--dry-run] [-y]",
    .details = "A filter without --status selects failed tasks only.\n" CHANGE_DETAILS,
    CMD_OPTIONS(options),
    .exclusive = "in at",
    .values_size = sizeof(struct change_values),
    .max_operands = -1,
    .level = CMD_SCHEMA,
    .formats = OUT_NO_ID,
    .examples = "dq retry 17\n"
                "dq retry -t \"mail.*\" -s failed --since 1d --in 10m",
    .run = run,
};
