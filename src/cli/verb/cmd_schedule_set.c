/*
 * cmd_schedule_set.c - dq schedule set: adds a schedule, or makes one what the command line says.
 */
#include "cli/judge/fleet.h"
#include "cli/line/verbs.h"
#include "cli/many/act.h"
#include "cli/many/schedule_words.h"
#include "store/ask/schedule_store.h"

/* It goes on belonging to the one whose file has it. */
static int keep_owner(struct cmd_context *c, struct schedule *s, struct err *err)
{
    struct schedule old = {0};
    int rc = schedule_store_find(c->db, s->name, false, &old, err);
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
        cmd_wake_rules(c);
        report(c, &change);
        fleet_note_tag(c, s.tag);
    }
    schedule_store_change_done(&change, 1);
    schedule_row_done(&s);
    return rc;
}

#define FIELD(name) offsetof(struct schedule_values, name)
static const struct cmd_option options[] = {
    {"cron", 0, CMD_TEXT, FIELD(cron), "EXPR", NULL, 0},
    {"every", 0, CMD_TEXT, FIELD(every), "D", NULL, 0},
    {"gap", 0, CMD_TEXT, FIELD(gap), "D", NULL, 0},
    {"zone", 0, CMD_TEXT, FIELD(zone), "ZONE", NULL, 0},
    {"from", 0, CMD_INSTANT, FIELD(from), "TIME", NULL, 0},
    {"to", 0, CMD_INSTANT, FIELD(to), "TIME", NULL, 0},
    {"spread", 0, CMD_DURATION, FIELD(spread_ms), "D", NULL, 1},
    {"catch-up", 0, CMD_CHOICE, FIELD(catch_up), "WHAT", slot_catch_up_names, 0},
    {"within", 0, CMD_DURATION, FIELD(within_ms), "D", NULL, 1},
    {"overlap", 0, CMD_CHOICE, FIELD(overlap), "WHAT", slot_overlap_names, 0},
    {"expires", 0, CMD_DURATION, FIELD(expires_ms), "D", NULL, 1},
    {"alarm-after", 0, CMD_DURATION, FIELD(alarm_after_ms), "D", NULL, 1},
    {"body-json", 0, CMD_BODY, FIELD(body_json), "JSON", NULL, 0},
    {"new", 0, CMD_FLAG, FIELD(only_new), NULL, NULL, 0},
};

const struct cmd cmd_schedule_set = {
    .name = "schedule set",
    CMD_OPTIONS(options, schedule_values),
    .exclusive = "cron every gap, zone every, zone gap",
    .min_operands = 2,
    .max_operands = 3,
    .level = CMD_CONF,
    .run = run,
};
