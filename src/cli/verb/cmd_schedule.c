/*
 * cmd_schedule.c - dq schedule list, show and next: the schedules, one of them with its latest
 * slots, and those that come.
 */
#include "cli/line/select.h"
#include "cli/line/verbs.h"
#include "cli/many/schedule_words.h"
#include "cli/show/schedule_columns.h"
#include "cli/show/task_columns.h"
#include "store/ask/schedule_store.h"

#include "base/text.h"

#include <sys/param.h>

#define SLOTS_SHOWN 10
#define SLOTS_MOST 10000 /* of next */

/* ---- list ---- */

struct list_values {
    const char *tag;
    int64_t most;
};

#define TABLE_COLUMNS "name,tag,expression,zone,next,last,result,took,late,missed_week,state"
#define TABLE_DROP "zone,late,took,tag,missed_week,last"

static int run_list(struct cmd_context *c, struct err *err)
{
    const struct list_values *v = c->values;
    const struct schedule_filter filter = {.glob = c->operand_count ? c->operands[0] : NULL,
                                           .most = v->most > 0 && !v->tag ? (size_t)v->most : 0,
                                           .bodies = c->style.format == OUT_JSON ||
                                                     c->style.format == OUT_NDJSON};
    struct schedule *all;
    size_t count, shown = 0;
    int rc = schedule_store_list(c->db, &filter, &all, &count, &c->style.cell.now_at, err);
    if (rc < 0)
        return rc;
    const struct out_table table = {.columns = schedule_columns,
                                    .count = schedule_column_count,
                                    .shown = TABLE_COLUMNS,
                                    .drop = TABLE_DROP};
    struct out *out = out_new(&c->style, &table, NULL);
    for (size_t i = 0; i < count && (v->most <= 0 || shown < (size_t)v->most); i++) {
        if (task_tag_glob(v->tag, all[i].tag)) {
            out_row(out, &all[i]);
            shown++;
        }
    }
    out_end(out, 0);
    schedule_row_free(all, count);
    if (!shown)
        select_note_none(
            c, count ? "no schedule matches" : "there are no schedules; dq schedule set adds one",
            NULL);
    return rc;
}

static const struct cmd_option list_options[] = {
    {"tag", 't', CMD_TAGS, offsetof(struct list_values, tag), "GLOB", NULL, 0},
    {"number", 'n', CMD_COUNT, offsetof(struct list_values, most), "N", NULL, 1},
};

const struct cmd cmd_schedule_list = {
    .name = "schedule list",
    CMD_OPTIONS(list_options, list_values),
    .max_operands = 1,
    .pages = true,
    .run = run_list,
};

#define ROW(name) &cmd_##name,
static const struct cmd *const commands[] = {VERBS_SCHEDULE(ROW) NULL};

const struct cmd cmd_schedule = {
    .name = "schedule",
    .commands = commands,
    CMD_OPTIONS(list_options, list_values),
    .pages = true,
    .run = run_list,
};

/* ---- show ---- */

#define SLOT ((const struct schedule_slot *)row)

OUT_GETTER(decision)
{
    cell_set_text(ret, slot_decision_name(SLOT->decision));
    ret->colour =
        SLOT->decision == SLOT_RAN || SLOT->decision == SLOT_BY_HAND ? CELL_PLAIN : CELL_WARN;
}

OUT_GETTER(result)
{
    if (SLOT->status >= 0) {
        cell_set_text(ret, task_status_name(SLOT->status));
        ret->colour = task_status_colour(SLOT->status);
    }
}

#define SHOWN(sql, ...) COLUMN(schedule_slot, NULL, __VA_ARGS__),
static const struct column slot_columns[] = {SCHEDULE_SLOTS_COLUMNS(SHOWN)};

static void put_json(const struct cmd_context *c, const struct schedule *s,
                     const struct schedule_slot *slots, size_t count)
{
    struct buf b = BUF_INIT;
    BUF_LOCAL struct buf sentence = BUF_INIT;
    schedule_words_put_sentence(&sentence, s);
    buf_chr(&b, '{');
    out_put_members(&b, &c->style.cell, schedule_columns, schedule_column_count, s, &c->style.cell);
    cell_put_json_text(&b, &c->style.cell, "sentence", sentence.data);
    out_put_array(&b, &c->style.cell, "slots", OUT_OF(slot_columns), slots, sizeof *slots, count);
    buf_str(&b, "}\n");
    out_take(&b);
}

static void put_table(struct cmd_context *c, const struct schedule *s,
                      const struct schedule_slot *slots, size_t count)
{
    BUF_LOCAL struct buf sentence = BUF_INIT;
    schedule_words_put_sentence(&sentence, s);
    out_record(&c->style, schedule_columns, schedule_column_count, s);
    struct buf text = BUF_INIT;
    buf_chr(&text, '\n');
    text_escape(&text, sentence.data, sentence.len, 0);
    buf_str(&text, count ? "\n\nlatest slots:\n" : "\n");
    out_take(&text);
    if (count)
        out_all(&c->style, OUT_OF(slot_columns, .drop = "slots,missed,decided,exit,task_id"), NULL,
                slots, sizeof *slots, count);
}

static int run_show(struct cmd_context *c, struct err *err)
{
    struct schedule s = {0};
    struct schedule_slot *slots = NULL;
    size_t count = 0;
    int rc = schedule_store_find(c->db, c->operands[0], true, &s, err);
    if (rc == 0)
        rc = schedule_store_slots(c->db, s.name, SLOTS_SHOWN, &slots, &count, err);
    if (rc == 0)
        rc = cmd_now(c, &c->style.cell.now_at, err);
    if (rc == 0 && (c->style.format == OUT_JSON || c->style.format == OUT_NDJSON))
        put_json(c, &s, slots, count);
    else if (rc == 0 && c->style.format == OUT_TABLE)
        put_table(c, &s, slots, count);
    else if (rc == 0)
        out_record(&c->style, schedule_columns, schedule_column_count, &s);
    schedule_store_slots_free(slots, count);
    schedule_row_done(&s);
    return rc;
}

const struct cmd cmd_schedule_show = {
    .name = "schedule show",
    .min_operands = 1,
    .pages = true,
    .formats = OUT_NO_ID,
    .run = run_show,
};

/* ---- next ---- */

struct next_values {
    int64_t count;
    struct cmd_when since;
};

struct next {
    int64_t at, due_at;
    const char *note;
};

#define NEXT ((const struct next *)row)

OUT_GETTER(in)
{
    cell_set_until(ret, NEXT->at);
}

static const struct column next_columns[] = {
    OUT_FIELD(next, "slot", TIME, at, 0),
    OUT_GET("in", MS, 0, get_in),
    OUT_FIELD(next, "due", TIME, due_at, 0),
    OUT_FIELD(next, "note", TEXT, note, 0),
};

static void put_next(struct cmd_context *c, const struct schedule *s, const struct timetable *t,
                     int64_t since_at, int64_t most)
{
    struct next n = {.at = since_at};
    enum timetable_shift shift;
    struct out *out = out_new(
        &c->style,
        OUT_OF(next_columns, .shown = s->spread_ms ? "slot,in,due,note" : "slot,in,note"), NULL);
    while (most-- > 0 && timetable_next(t, n.at, &n.at, &shift)) {
        n.due_at = n.at + slot_offset_ms(s->name, s->spread_ms);
        n.note = schedule_words_shifts[shift];
        out_row(out, &n);
    }
    out_end(out, 0);
}

static int run_next(struct cmd_context *c, struct err *err)
{
    const struct next_values *v = c->values;
    struct schedule s = {0};
    BUF_LOCAL struct buf sentence = BUF_INIT;
    struct timetable *t = NULL;
    int64_t since_at;
    int rc = v->count <= SLOTS_MOST
                 ? schedule_store_find(c->db, c->operands[0], false, &s, err)
                 : err_set(err, ERR_USAGE,
                           "-n: at most %d slots are shown; --since shows later ones", SLOTS_MOST);
    if (rc == 0)
        rc = cmd_now(c, &c->style.cell.now_at, err);
    since_at = c->style.cell.now_at;
    if (rc == 0)
        rc = cmd_resolve(c, &v->since, &since_at, err);
    if (rc == 0 && !(t = schedule_row_timetable(&s, err)))
        rc = ERR_DATA;
    if (rc == 0) {
        schedule_words_put_sentence(&sentence, &s);
        cmd_note(c, "%s: %s%s", s.name, sentence.data,
                 s.paused_at != TASK_TIME_NONE
                     ? "; it is paused: these slots are skipped until dq schedule resume"
                     : "");
        /* what has been decided does not come again */
        put_next(c, &s, t,
                 v->since.text ? since_at - 1
                               : MAX(since_at, s.next_at == TASK_TIME_NONE ? 0 : s.next_at - 1),
                 v->count > 0 ? v->count : SLOTS_SHOWN);
    }
    timetable_free(t);
    schedule_row_done(&s);
    return rc;
}

#define FIELD(name) offsetof(struct next_values, name)
static const struct cmd_option next_options[] = {
    {"number", 'n', CMD_COUNT, FIELD(count), "N", NULL, 1},
    {"since", 0, CMD_INSTANT, FIELD(since), "TIME", NULL, 0},
};

const struct cmd cmd_schedule_next = {
    .name = "schedule next",
    CMD_OPTIONS(next_options, next_values),
    .min_operands = 1,
    .pages = true,
    .formats = OUT_NO_ID,
    .run = run_next,
};
