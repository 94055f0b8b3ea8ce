/*
 * cmd_schedule_change.c - dq schedule pause, resume and delete: of the schedules that are named.
 */
#include "cli/line/verbs.h"
#include "cli/many/act.h"
#include "store/ask/schedule_store.h"

#include "base/mem.h"

struct change_values {
    const char *reason;
};

enum change { PAUSE, RESUME, DELETE };

static int delete_one(struct db *db, const char *name, const struct event_act *act, struct err *err)
{
    struct schedule_change change = {.name = name};
    size_t bad;
    int rc = schedule_store_change(db, &change, 1, NULL, act, &bad, err);
    if (rc == 0 && !change.existed)
        rc = err_set(err, ERR_NOT_FOUND, "schedule %s does not exist", name);
    schedule_store_change_done(&change, 1);
    return rc < 0 ? rc : 1;
}

/* Each by itself: one that does not exist is reported, and the others are changed. */
static int each(struct cmd_context *c, enum change change, const char *reason, const char *done,
                const char *before, struct err *err)
{
    for (int i = 0; i < c->operand_count; i++) {
        const char *name = c->operands[i];
        LOCAL_BY(act_done) struct act act = {0};
        int tries = 0, rc;
        act_init(&act, c, NULL, 0);
        act_about(&act, name);
        do
            rc = change == DELETE
                     ? delete_one(c->db, name, &act.event, err)
                     : schedule_store_pause(c->db, name, change == PAUSE, reason, &act.event, err);
        while (cmd_again(rc, &tries));
        if (rc == ERR_NOT_FOUND)
            cmd_complain(c, "%s", err->text);
        else if (rc < 0)
            return rc;
        else
            cmd_note(c, "%s %s%s", name, rc ? done : before, rc && change == PAUSE ? name : "");
    }
    return 0;
}

static int run_pause(struct cmd_context *c, const void *values, struct err *err)
{
    const struct change_values *v = values;
    return each(
        c, PAUSE, v->reason,
        "is paused: its slots are skipped, and not caught up. To resume: dq schedule resume ",
        "was paused already", err);
}

static int run_resume(struct cmd_context *c, const void *values __attribute__((unused)),
                      struct err *err)
{
    int rc = each(c, RESUME, NULL, "runs again, from its next slot on", "was not paused", err);
    if (rc == 0)
        cmd_wake_rules(c);
    return rc;
}

static int run_delete(struct cmd_context *c, const void *values __attribute__((unused)),
                      struct err *err)
{
    return each(c, DELETE, NULL, "is deleted; tasks that it has added stay", "", err);
}

static const struct cmd_option pause_options[] = {
    {"reason", 0, CMD_TEXT, offsetof(struct change_values, reason), "TEXT", NULL, 0},
};

#define CHANGE .min_operands = 1, .max_operands = -1

const struct cmd cmd_schedule_pause = {
    .name = "schedule pause",
    CMD_OPTIONS(pause_options, change_values),
    CHANGE,
    .run = run_pause,
};

const struct cmd cmd_schedule_resume = {
    .name = "schedule resume",
    CHANGE,
    .run = run_resume,
};

const struct cmd cmd_schedule_delete = {
    .name = "schedule delete",
    CHANGE,
    .run = run_delete,
};
