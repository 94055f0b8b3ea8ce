/*
 * cmd_schedule_set.c - dq schedule set: adds a schedule, or makes one what the command line says.
 */
#include "cli/judge/fleet.h"
#include "cli/line/verbs.h"
#include "cli/many/act.h"
#include "cli/many/schedule_words.h"
#include "store/ask/schedule_store.h"

#include <stdlib.h>

/* It goes on belonging to the one whose file has it. */
static int keep_owner(struct cmd_context *c, struct schedule *s, struct err *err)
{
    struct schedule old = {0};
    int rc = schedule_store_find(c->db, s->name, &old, err);
    if (rc == 0) {
        s->owner = old.owner;
        old.owner = NULL;
        schedule_row_done(&old);
    }
    return rc == ERR_NOT_FOUND ? 0 : rc;
}

static void report(struct cmd_context *c, const struct schedule_change *change)
{
    BUF_LOCAL struct buf b = BUF_INIT;
    if (!change->existed)
        buf_str(&b, "is new");
    else if (!change->changed)
        buf_str(&b, "is unchanged");
    else {
        buf_str(&b, "is changed: ");
        schedule_words_put_changed(&b, change->changed);
    }
    buf_str(&b, "; ");
    schedule_words_put_sentence(&b, change->set);
    if (change->next_at != TASK_TIME_NONE) {
        struct err none;
        struct timetable *t = schedule_row_timetable(change->set, &none);
        enum timetable_shift shift;
        int64_t at;
        buf_str(&b, "; next: ");
        cmd_put_instant(&b, change->next_at);
        if (t && timetable_next(t, change->next_at - 1, &at, &shift) &&
            schedule_words_shifts[shift])
            buf_printf(&b, " (%s)", schedule_words_shifts[shift]);
        timetable_free(t);
    } else {
        buf_str(&b, "; it has no more slots");
    }
    cmd_note(c, "%s %s", change->set->name, b.data);
}

static int set(struct cmd_context *c, struct schedule_change *change, struct err *err)
{
    struct act act;
    size_t bad;
    int tries = 0, rc;
    act_init(&act, c, NULL, 0);
    act_about(&act, change->set->name);
    act.event.tag = change->set->tag;
    do
        rc = schedule_store_change(c->db, change, 1, NULL, &act.event, &bad, err);
    while (cmd_again(rc, &tries));
    act_done(&act);
    return rc;
}

static int run(struct cmd_context *c, const void *values, struct err *err)
{
    const struct schedule_values *v = values;
    struct schedule s;
    bool early = v->from.text || v->to.text; /* the database's clock may be needed */
    int rc = early ? cmd_open(c, CMD_SCHEMA, err) : 0;
    if (rc == 0)
        rc = schedule_words_take(c, &s, err);
    if (rc < 0)
        return rc;
    if (!early)
        rc = cmd_open(c, CMD_SCHEMA, err);
    struct schedule_change change = {.set = &s, .only_new = v->only_new};
    if (rc == 0)
        rc = keep_owner(c, &s, err);
    if (rc == 0)
        rc = set(c, &change, err);
    if (rc == 0) {
        cmd_wake_schedules(c);
        report(c, &change);
        fleet_note_tag(c, s.tag);
    }
    schedule_store_change_done(&change, 1);
    schedule_row_done(&s);
    return rc;
}

#define FIELD(name) offsetof(struct schedule_values, name)
/* clang-format off */
static const struct cmd_option options[] = {
    {"cron", 0, CMD_TEXT, FIELD(cron), "EXPR", "when its slots are, as in crontab(5): '30 2 * * 1-5', @daily", NULL, 0},
    {"every", 0, CMD_TEXT, FIELD(every), "D", "a slot every D, at least 1s, counted from --from, else from 1970 on", NULL, 0},
    {"gap", 0, CMD_TEXT, FIELD(gap), "D", "a slot D after the end of the last run", NULL, 0},
    {"zone", 0, CMD_TEXT, FIELD(zone), "ZONE", "of --cron, such as Europe/Berlin; default: that of this host", NULL, 0},
    {"from", 0, CMD_INSTANT, FIELD(from), "TIME", "no slots before TIME", NULL, 0},
    {"to", 0, CMD_INSTANT, FIELD(to), "TIME", "no slots after TIME", NULL, 0},
    {"spread", 0, CMD_DURATION, FIELD(spread_ms), "D",
     "run within D after each slot, always equally late, so that schedules do not meet", NULL, 1},
    {"catch-up", 0, CMD_CHOICE, FIELD(catch_up), "WHAT",
     "which slots run that were missed while no dqd ran: the latest (default), all, up to 1000, or none: skip",
     slot_catch_up_names, 0},
    {"within", 0, CMD_DURATION, FIELD(within_ms), "D",
     "catch up with slots of the last D only; default: a period, a day at most", NULL, 1},
    {"overlap", 0, CMD_CHOICE, FIELD(overlap), "WHAT",
     "if the last run has not ended: skip the slot (default), one more if none waits, allow any number, or replace it",
     slot_overlap_names, 0},
    {"expires", 0, CMD_DURATION, FIELD(expires_ms), "D",
     "do not start or retry a run later than D after it was due; default: at the next slot", NULL, 1},
    {"alarm-after", 0, CMD_DURATION, FIELD(alarm_after_ms), "D",
     "dq check is critical if no run has succeeded D after a slot; default: a period, at least 5m", NULL, 1},
    {"body-json", 0, CMD_BODY, FIELD(body_json), "JSON", "the body as {\"body\": \"...\"} or {\"body_base64\": \"...\"}", NULL, 0},
    {"new", 0, CMD_FLAG, FIELD(only_new), NULL, "fail if there is a schedule of that name", NULL, 0},
};
/* clang-format on */

const struct cmd cmd_schedule_set = {
    .name = "schedule set",
    .group = "change",
    CMD_OPTIONS(options, schedule_values),
    .exclusive = "cron every gap, zone every, zone gap",
    .min_operands = 2,
    .max_operands = 3,
    .level = CMD_CONF,
    .formats = OUT_ANY,
    .run = run,
};
