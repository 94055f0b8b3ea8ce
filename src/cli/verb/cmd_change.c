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
    .group = "change", .max_operands = -1, .level = CMD_SCHEMA, .formats = OUT_NO_ID,              \
    .run = change_run, .request = &(const struct change_request)                                   \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

static const struct cmd_option plain[] = {CHANGE_OPTIONS};
static const struct cmd_option spread[] = {CHANGE_OVER, CHANGE_OPTIONS};
static const struct cmd_option again[] = {CHANGE_WHEN("due after D; default: at once"), CHANGE_OVER,
                                          CHANGE_OPTIONS};
static const struct cmd_option timed[] = {CHANGE_WHEN("due D from now"), CHANGE_OVER,
                                          CHANGE_OPTIONS};

const struct cmd cmd_cancel = {
    .name = "cancel",
    CHANGE(TASK_CANCEL, 0, "cancel", "cancelled", false),
    .summary = "cancel pending and running tasks; running handlers are killed",
    .usage = "ID...\n--key KEY [--tag GLOB]\n[FILTER]... [--dry-run] [-y]",
    .details = CHANGE_DETAILS,
    CMD_OPTIONS(plain, change_values),
    .examples = "dq cancel 17 18\n"
                "dq cancel --key order-4711\n"
                "dq cancel -t \"mail.*\" -s pending --since 10m --dry-run",
};

const struct cmd cmd_retry = {
    .name = "retry",
    CHANGE(TASK_RETRY, TASK_BIT(TASK_FAILED), "retry", "retried", false),
    .summary = "run failed, cancelled or done tasks again, from attempt 1",
    .usage =
        "ID... [--in D | --at TIME] [--over D]\n[FILTER]... [--in D | --at TIME] [--over D] [--dry-run] [-y]",
    .details = "A filter without --status selects failed tasks only.\n" CHANGE_DETAILS,
    CMD_OPTIONS(again, change_values),
    .exclusive = "in at",
    .examples = "dq retry 17\n"
                "dq retry -t \"mail.*\" -s failed --since 1d --in 10m",
};

const struct cmd cmd_reschedule = {
    .name = "reschedule",
    CHANGE(TASK_RESCHEDULE, 0, "reschedule", "rescheduled", true),
    .summary = "change the time of pending tasks",
    .usage =
        "ID... {--in D | --at TIME} [--over D]\n[FILTER]... {--in D | --at TIME} [--over D] [--dry-run] [-y]",
    .details = "The time at which a task expires moves along.\n" CHANGE_DETAILS,
    CMD_OPTIONS(timed, change_values),
    .exclusive = "in at",
    .examples = "dq reschedule 17 --in 2h\n"
                "dq reschedule -t report.daily --at \"next monday 6am\"",
};

const struct cmd cmd_run_now = {
    .name = "run-now",
    CHANGE(TASK_RESCHEDULE, 0, "run", "made due now", false),
    .summary = "make pending tasks due at once",
    .usage = "ID... [--over D]\n[FILTER]... [--over D] [--dry-run] [-y]",
    .details =
        "A task that expires does not any more. To run finished tasks again, use dq retry.\n" CHANGE_DETAILS,
    CMD_OPTIONS(spread, change_values),
    .examples = "dq run-now 17\n"
                "dq run-now -t report.daily",
};

const struct cmd cmd_delete = {
    .name = "delete",
    .alias = "rm",
    CHANGE(CHANGE_DELETE, 0, "delete", "deleted", false),
    .summary = "delete finished tasks and their attempts",
    .usage = "ID...\n[FILTER]... [--dry-run] [-y]",
    .details =
        "Pending and running tasks must be cancelled first, with dq cancel.\n" CHANGE_DETAILS,
    CMD_OPTIONS(plain, change_values),
    .examples = "dq delete 17\n"
                "dq delete -t \"test.*\" -s done,failed -y",
};
