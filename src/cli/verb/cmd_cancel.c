/*
 * cmd_cancel.c - dq cancel: pending and running tasks become cancelled. The owner of a running one
 * kills its handler.
 */
#include "cli/line/verbs.h"
#include "cli/many/change.h"

static int run(struct cmd_context *c, const void *values, struct err *err)
{
    const struct change_request request = {TASK_CANCEL, 0, "cancel", "cancelled", false};
    return change_run(c, values, &request, err);
}

static const struct cmd_option options[] = {CHANGE_OPTIONS};

const struct cmd cmd_cancel = {
    .name = "cancel",
    .group = "change",
    .summary = "cancel pending and running tasks; running handlers are killed",
    .usage = "ID...\n--key KEY [--tag GLOB]\n[FILTER]... [--dry-run] [-y]",
    .details = CHANGE_DETAILS,
    CMD_OPTIONS(options),
    .values_size = sizeof(struct change_values),
    .max_operands = -1,
    .level = CMD_SCHEMA,
    .formats = OUT_NO_ID,
    .examples = "dq cancel 17 18\n"
                "dq cancel --key order-4711\n"
                "dq cancel -t \"mail.*\" -s pending --since 10m --dry-run",
    .run = run,
};
