/*
 * cmd_reschedule.c - dq reschedule: pending tasks get another time.
 */
#include "cli/line/verbs.h"
#include "cli/many/change.h"

static int run(struct cmd_context *c, const void *values, struct err *err)
{
    const struct change_values *v = values;
    if (v->in_ms < 0 && !v->at.text)
        return err_set(err, ERR_USAGE, "no new time given; use --in D or --at TIME");
    const struct change_request request = {TASK_RESCHEDULE, 0, "reschedule", "rescheduled", true};
    return change_run(c, values, &request, err);
}

static const struct cmd_option options[] = {
    CHANGE_WHEN("due D from now"),
    CHANGE_OVER,
    CHANGE_OPTIONS,
};

const struct cmd cmd_reschedule = {
    .name = "reschedule",
    .group = "change",
    .summary = "change the time of pending tasks",
    .usage =
        "ID... {--in D | --at TIME} [--over D]\n[FILTER]... {--in D | --at TIME} [--over D] [--dry-run] [-y]",
    .details = "The time at which a task expires moves along.\n" CHANGE_DETAILS,
    CMD_OPTIONS(options),
    .exclusive = "in at",
    .values_size = sizeof(struct change_values),
    .max_operands = -1,
    .level = CMD_SCHEMA,
    .formats = OUT_NO_ID,
    .examples = "dq reschedule 17 --in 2h\n"
                "dq reschedule -t report.daily --at \"next monday 6am\"",
    .run = run,
};
