/*
 * cmd_schedule_change.c - the commands of dq schedule that change a schedule or add its tasks: set,
 * pause, resume, delete, run-now and backfill.
 */
#include "cli/judge/fleet.h"
#include "cli/line/verbs.h"
#include "cli/many/act.h"
#include "cli/many/schedule_words.h"
#include "store/ask/schedule_run.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/param.h>

#define BACKFILL_MOST 10000

/* ---- set ---- */

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

static int run_set(struct cmd_context *c, struct err *err)
{
    const struct schedule_values *v = c->values;
    struct schedule s;
    size_t bad;
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
        rc = act_schedules(c, s.name, s.tag, &change, 1, NULL, &bad, err);
    if (rc == 0) {
        cmd_wake_rules(c);
        report(c, &change);
        fleet_note_tag(c, s.tag);
    }
    schedule_store_change_done(&change, 1);
    schedule_row_done(&s);
    return rc;
}

#define SET(name) offsetof(struct schedule_values, name)
static const struct cmd_option set_options[] = {
    {"cron", 0, CMD_TEXT, SET(cron), "EXPR", NULL, 0},
    {"every", 0, CMD_TEXT, SET(every), "D", NULL, 0},
    {"gap", 0, CMD_TEXT, SET(gap), "D", NULL, 0},
    {"zone", 0, CMD_TEXT, SET(zone), "ZONE", NULL, 0},
    {"from", 0, CMD_INSTANT, SET(from), "TIME", NULL, 0},
    {"to", 0, CMD_INSTANT, SET(to), "TIME", NULL, 0},
    {"spread", 0, CMD_DURATION, SET(spread_ms), "D", NULL, 1},
    {"catch-up", 0, CMD_CHOICE, SET(catch_up), "WHAT", slot_catch_up_names, 0},
    {"within", 0, CMD_DURATION, SET(within_ms), "D", NULL, 1},
    {"overlap", 0, CMD_CHOICE, SET(overlap), "WHAT", slot_overlap_names, 0},
    {"expires", 0, CMD_DURATION, SET(expires_ms), "D", NULL, 1},
    {"alarm-after", 0, CMD_DURATION, SET(alarm_after_ms), "D", NULL, 1},
    {"body-json", 0, CMD_BODY, SET(body_json), "JSON", NULL, 0},
    {"new", 0, CMD_FLAG, SET(only_new), NULL, NULL, 0},
};

const struct cmd cmd_schedule_set = {
    .name = "schedule set",
    CMD_OPTIONS(set_options, schedule_values),
    .exclusive = "cron every gap, zone every, zone gap",
    .min_operands = 2,
    .max_operands = 3,
    .level = CMD_CONF,
    .run = run_set,
};

/* ---- pause, resume, delete ---- */

struct change_values {
    const char *reason; /* of a pause; the others have no options */
};

struct change_request {
    enum { PAUSE, RESUME, DELETE } change;
    const char *done, *before; /* before: it was so already */
};

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
static int run_change(struct cmd_context *c, struct err *err)
{
    const struct change_request *r = c->cmd->request;
    const char *reason =
        r->change == PAUSE ? ((const struct change_values *)c->values)->reason : NULL;
    for (int i = 0; i < c->operand_count; i++) {
        const char *name = c->operands[i];
        LOCAL_BY(act_done) struct act act = act_of(c, name, NULL);
        BUF_LOCAL struct buf word = BUF_INIT;
        int tries = 0, rc;
        do
            rc = r->change == DELETE ? delete_one(c->db, name, &act.event, err)
                                     : schedule_store_pause(c->db, name, r->change == PAUSE, reason,
                                                            &act.event, err);
        while (cmd_again(rc, &tries));
        if (rc == ERR_NOT_FOUND)
            cmd_complain(c, "%s", err->text);
        else if (rc < 0)
            return rc;
        else if (rc && r->change == PAUSE) {
            text_shell_word(&word, name);
            cmd_note(c, "%s %s%s", name, r->done, word.data);
        } else
            cmd_note(c, "%s %s", name, rc ? r->done : r->before);
    }
    if (r->change == RESUME)
        cmd_wake_rules(c);
    return 0;
}

static const struct cmd_option pause_options[] = {
    {"reason", 0, CMD_TEXT, offsetof(struct change_values, reason), "TEXT", NULL, 0},
};

#define CHANGE(...)                                                                                \
    .min_operands = 1, .max_operands = -1, .run = run_change,                                      \
    .request = &(const struct change_request)                                                      \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

const struct cmd cmd_schedule_pause = {
    .name = "schedule pause",
    CMD_OPTIONS(pause_options, change_values),
    CHANGE(PAUSE,
           "is paused: its slots are skipped, and not caught up. To resume: dq schedule resume ",
           "was paused already"),
};

const struct cmd cmd_schedule_resume = {
    .name = "schedule resume",
    CHANGE(RESUME, "runs again, from its next slot on", "was not paused"),
};

const struct cmd cmd_schedule_delete = {
    .name = "schedule delete",
    CHANGE(DELETE, "is deleted; tasks that it has added stay", ""),
};

/* ---- run-now ---- */

static int run_now(struct cmd_context *c, struct err *err)
{
    const char *name = c->operands[0];
    LOCAL_BY(act_done) struct act act = act_of(c, name, NULL);
    uint64_t id;
    int64_t slot_at;
    int tries = 0, rc;
    do
        rc = schedule_run_now(c->db, name, &act.event, &id, &slot_at, err);
    while (cmd_again(rc, &tries));
    if (rc < 0)
        return rc;
    cmd_wake(c, 0);
    out_printf("%" PRIu64 "\n", id);
    cmd_note(c, "%s runs now; its next slot stays", name);
    return 0;
}

const struct cmd cmd_schedule_run_now = {
    .name = "schedule run-now",
    .min_operands = 1,
    .formats = OUT_BIT(OUT_TABLE) | OUT_BIT(OUT_ID),
    .run = run_now,
};

/* ---- backfill ---- */

struct backfill_values {
    struct cmd_when from, to;
    int64_t over_ms;
};

/* The slots from from_at to to_at, both included. */
static int find_slots(const struct schedule *s, int64_t from_at, int64_t to_at, int64_t **ret,
                      size_t *ret_count, struct err *err)
{
    struct timetable *t = schedule_row_timetable(s, err);
    int64_t at = from_at - 1;
    size_t cap = 0;
    if (!t)
        return ERR_DATA;
    while (*ret_count <= BACKFILL_MOST && timetable_next(t, at, &at, NULL) && at <= to_at) {
        MEM_ROOM(*ret, *ret_count, cap);
        (*ret)[(*ret_count)++] = at;
    }
    timetable_free(t);
    if (*ret_count > BACKFILL_MOST)
        return err_set(err, ERR_USAGE, "there are more than %d slots; choose a shorter time",
                       BACKFILL_MOST);
    return *ret_count ? 0 : err_set(err, ERR_NOT_FOUND, "%s has no slot in that time", s->name);
}

static int backfill(struct cmd_context *c, const struct backfill_values *v, const int64_t *slots,
                    size_t count, struct err *err)
{
    LOCAL_BY(act_done) struct act act = act_of(c, c->operands[0], NULL);
    int tries = 0, rc;
    do
        rc = schedule_run_backfill(c->db, c->operands[0], slots, count,
                                   v->over_ms > 0 ? v->over_ms : 0, &act.event, err);
    while (cmd_again(rc, &tries));
    return rc;
}

static int run_backfill(struct cmd_context *c, struct err *err)
{
    const struct backfill_values *v = c->values;
    LOCAL_BY(schedule_row_done) struct schedule s = {0};
    int64_t from_at = 0, to_at, now_at;
    MEM_LOCAL int64_t *slots = NULL;
    size_t count = 0;
    if (!v->from.text)
        return err_set(err, ERR_USAGE, "from when? Give --from TIME");
    if (schedule_store_find(c->db, c->operands[0], false, &s, err) < 0 ||
        cmd_now(c, &now_at, err) < 0)
        return err->code;
    /* what is not decided yet runs by itself */
    to_at = s.next_at == TASK_TIME_NONE || s.kind == TIMETABLE_GAP ? now_at
                                                                   : MIN(now_at, s.next_at - 1);
    if (cmd_resolve(c, &v->from, &from_at, err) < 0 || cmd_resolve(c, &v->to, &to_at, err) < 0)
        return err->code;
    if (to_at > now_at)
        return err_set(err, ERR_USAGE,
                       "--to: that is in the future; its slots will run by themselves");
    if (find_slots(&s, from_at, to_at, &slots, &count, err) < 0 ||
        backfill(c, v, slots, count, err) < 0)
        return err->code;
    cmd_wake(c, 0);
    cmd_note(c, "%s: %zu slot%s run%s", s.name, count, count == 1 ? "" : "s",
             count == 1 ? "s" : "");
    return 0;
}

#define FIELD(name) offsetof(struct backfill_values, name)
static const struct cmd_option backfill_options[] = {
    {"from", 0, CMD_INSTANT, FIELD(from), "TIME", NULL, 0},
    {"to", 0, CMD_INSTANT, FIELD(to), "TIME", NULL, 0},
    {"over", 0, CMD_DURATION, FIELD(over_ms), "D", NULL, 0},
};

const struct cmd cmd_schedule_backfill = {
    .name = "schedule backfill",
    CMD_OPTIONS(backfill_options, backfill_values),
    .min_operands = 1,
    .run = run_backfill,
};
