/*
 * cmd_delete.c - dq delete: finished tasks go away, with their attempts.
 */
#include "cli/line/verbs.h"
#include "cli/many/change.h"

static int run(struct cmd_context *c, const void *values, struct err *err)
{
    const struct change_request request = {CHANGE_DELETE, 0, "delete", "deleted", false};
    return change_run(c, values, &request, err);
}

static const struct cmd_option options[] = {CHANGE_OPTIONS};

const struct cmd cmd_delete = {
    .name = "delete",
    .alias = "rm",
    .group = "change",
    .summary = "delete finished tasks and their attempts",
    .usage = "ID...\n[FILTER]... [--dry-run] [-y]",
    .details =
        "Pending and running tasks must be cancelled first, with dq cancel.\n" CHANGE_DETAILS,
    CMD_OPTIONS(options),
    .values_size = sizeof(struct change_values),
    .max_operands = -1,
    .level = CMD_SCHEMA,
    .formats = OUT_NO_ID,
    .examples = "dq delete 17\n"
                "dq delete -t \"test.*\" -s done,failed -y",
    .run = run,
};
