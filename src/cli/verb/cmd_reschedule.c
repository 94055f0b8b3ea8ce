/*
 * cmd_reschedule.c - dq reschedule: pending tasks get another time.
 */
#include "cli/line/verbs.h"
#include "cli/many/change.h"
#include "store/ask/task_change.h"

struct reschedule_values {
    struct change_values change;
    int64_t in_ms;
    struct cmd_when at;
};

static int run(struct cmd_context *c, const void *values, struct err *err)
{
    const struct reschedule_values *v = values;
    struct task_change change = {.event = TASK_RESCHEDULE,
                                 .expected_at = TASK_TIME_NONE,
                                 .delay_ms = v->in_ms > 0 ? v->in_ms : 0};
    const unsigned from = task_transition(TASK_RESCHEDULE)->from;
    const struct change_request request = {&change, from, from, "reschedule", "rescheduled"};
    if (v->in_ms < 0 && !v->at.text)
        return err_set(err, ERR_USAGE, "no new time given; use --in D or --at TIME");
    int rc = cmd_resolve(c, &v->at, &change.expected_at, err);
    return rc < 0 ? rc : change_run(c, &v->change, &request, err);
}

#define FIELD(name) offsetof(struct reschedule_values, name)
static const struct cmd_option options[] = {
    {"in", 'i', CMD_DURATION, FIELD(in_ms), "D", "due D from now", NULL, 0},
    {"at", 'a', CMD_INSTANT, FIELD(at), "TIME", "due at TIME", NULL, 0},
    CHANGE_OVER(struct reschedule_values, change.),
    CHANGE_OPTIONS(struct reschedule_values, change.),
};

const struct cmd cmd_reschedule = {
    .name = "reschedule",
    .group = "change",
    .summary = "change the time of pending tasks",
    .usage =
        "ID... {--in D | --at TIME} [--over D]\n[FILTER]... {--in D | --at TIME} [--over D] [--dry-run] [-y]",
    .details = CHANGE_DETAILS,
    CMD_OPTIONS(options),
    .exclusive = "in at",
    .values_size = sizeof(struct reschedule_values),
    .max_operands = -1,
    .level = CMD_SCHEMA,
    .formats = OUT_NO_ID,
    .examples = "dq reschedule 17 --in 2h\n"
                "dq reschedule -t report.daily --at \"next monday 6am\"",
    .run = run,
};
