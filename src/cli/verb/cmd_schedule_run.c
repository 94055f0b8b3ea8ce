/*
 * cmd_schedule_run.c - dq schedule run-now and backfill: runs that no slot has asked for.
 */
#include "cli/line/verbs.h"
#include "cli/many/act.h"
#include "store/ask/schedule_run.h"
#include "store/ask/schedule_store.h"

#include "base/mem.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/param.h>

#define BACKFILL_MOST 10000

/* ---- run-now ---- */

static int run_now(struct cmd_context *c, const void *values __attribute__((unused)),
                   struct err *err)
{
    LOCAL_BY(act_done) struct act act = {0};
    const char *name = c->operands[0];
    uint64_t id;
    int64_t slot_at;
    int tries = 0, rc;
    act_init(&act, c, NULL, 0);
    act_about(&act, name);
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
    LOCAL_BY(act_done) struct act act = {0};
    int tries = 0, rc;
    act_init(&act, c, NULL, 0);
    act_about(&act, c->operands[0]);
    do
        rc = schedule_run_backfill(c->db, c->operands[0], slots, count,
                                   v->over_ms > 0 ? v->over_ms : 0, &act.event, err);
    while (cmd_again(rc, &tries));
    return rc;
}

static int run_backfill(struct cmd_context *c, const void *values, struct err *err)
{
    const struct backfill_values *v = values;
    LOCAL_BY(schedule_row_done) struct schedule s = {0};
    int64_t from_at = 0, to_at, now_at = 0, *slots = NULL;
    size_t count = 0;
    if (!v->from.text)
        return err_set(err, ERR_USAGE, "from when? Give --from TIME");
    int rc = schedule_store_find(c->db, c->operands[0], false, &s, err);
    if (rc == 0)
        rc = cmd_now(c, &now_at, err);
    /* what is not decided yet runs by itself */
    to_at = s.next_at == TASK_TIME_NONE || s.kind == TIMETABLE_GAP ? now_at
                                                                   : MIN(now_at, s.next_at - 1);
    if (rc == 0)
        rc = cmd_resolve(c, &v->from, &from_at, err);
    if (rc == 0)
        rc = cmd_resolve(c, &v->to, &to_at, err);
    if (rc == 0 && to_at > now_at)
        rc = err_set(err, ERR_USAGE,
                     "--to: that is in the future; its slots will run by themselves");
    if (rc == 0)
        rc = find_slots(&s, from_at, to_at, &slots, &count, err);
    if (rc == 0)
        rc = backfill(c, v, slots, count, err);
    if (rc == 0) {
        cmd_wake(c, 0);
        cmd_note(c, "%s: %zu slot%s run%s", s.name, count, count == 1 ? "" : "s",
                 count == 1 ? "s" : "");
    }
    free(slots);
    return rc;
}

#define FIELD(name) offsetof(struct backfill_values, name)
static const struct cmd_option options[] = {
    {"from", 0, CMD_INSTANT, FIELD(from), "TIME", NULL, 0},
    {"to", 0, CMD_INSTANT, FIELD(to), "TIME", NULL, 0},
    {"over", 0, CMD_DURATION, FIELD(over_ms), "D", NULL, 0},
};

const struct cmd cmd_schedule_backfill = {
    .name = "schedule backfill",
    CMD_OPTIONS(options, backfill_values),
    .min_operands = 1,
    .run = run_backfill,
};
