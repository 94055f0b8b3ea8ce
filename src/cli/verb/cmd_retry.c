/*
 * cmd_retry.c - dq retry: finished tasks become pending again, with a new ladder.
 */
#include "cli/line/verbs.h"
#include "cli/many/change.h"
#include "store/ask/task_change.h"

struct retry_values {
    struct change_values change;
    int64_t in_ms;
    struct cmd_when at;
};

static int run(struct cmd_context *c, const void *values, struct err *err)
{
    const struct retry_values *v = values;
    struct task_change change = {.event = TASK_RETRY,
                                 .expected_at = TASK_TIME_NONE,
                                 .delay_ms = v->in_ms > 0 ? v->in_ms : 0};
    const struct change_request request = {&change, task_transition(TASK_RETRY)->from,
                                           TASK_BIT(TASK_FAILED), "retry", "retried"};
    int rc = cmd_resolve(c, &v->at, &change.expected_at, err);
    return rc < 0 ? rc : change_run(c, &v->change, &request, err);
}

#define FIELD(name) offsetof(struct retry_values, name)
static const struct cmd_option options[] = {
    {"in", 'i', CMD_DURATION, FIELD(in_ms), "D", "due after D; default: at once", NULL, 0},
    {"at", 'a', CMD_INSTANT, FIELD(at), "TIME", "due at TIME", NULL, 0},
    CHANGE_OVER(struct retry_values, change.),
    CHANGE_OPTIONS(struct retry_values, change.),
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
    .values_size = sizeof(struct retry_values),
    .max_operands = -1,
    .level = CMD_SCHEMA,
    .formats = OUT_NO_ID,
    .examples = "dq retry 17\n"
                "dq retry -t \"mail.*\" -s failed --since 1d --in 10m",
    .run = run,
};
