/*
 * cmd_schedule.c - dq schedule: the schedules, and the commands about them.
 */
#include "cli/line/select.h"
#include "cli/line/verbs.h"
#include "cli/show/schedule_columns.h"
#include "store/ask/schedule_store.h"

struct list_values {
    const char *tag, *name;
    int64_t most;
};

#define TABLE_COLUMNS "name,tag,expression,zone,next,last,result,took,late,missed_week,state"
#define TABLE_DROP "zone,late,took,tag,missed_week,last"

static bool is_wanted(const struct list_values *v, const struct schedule *s)
{
    return !v->tag || task_tag_glob(v->tag, s->tag);
}

static int list(struct cmd_context *c, const void *values, struct err *err)
{
    const struct list_values *v = values;
    const struct schedule_filter filter = {.glob = c->operand_count ? c->operands[0] : NULL,
                                           .most = v->most > 0 && !v->tag ? (size_t)v->most : 0,
                                           .bodies = c->style.format == OUT_JSON ||
                                                     c->style.format == OUT_NDJSON};
    struct schedule *all;
    size_t count, shown = 0;
    struct out *out;
    int rc = schedule_store_list(c->db, &filter, &all, &count, &c->style.cell.now_at, err);
    if (rc < 0)
        return rc;
    const struct out_table table = {.columns = schedule_columns,
                                    .count = schedule_column_count,
                                    .shown = TABLE_COLUMNS,
                                    .drop = TABLE_DROP};
    rc = out_new(&out, &c->style, &table, NULL, err);
    for (size_t i = 0; rc == 0 && i < count && (v->most <= 0 || shown < (size_t)v->most); i++) {
        if (is_wanted(v, &all[i])) {
            out_row(out, &all[i]);
            shown++;
        }
    }
    rc = rc == 0 ? out_end(out, 0) : rc;
    schedule_row_free(all, count);
    if (rc == 0 && !shown)
        select_note_none(
            c, count ? "no schedule matches" : "there are no schedules; dq schedule set adds one",
            NULL);
    return rc;
}

#define FIELD(name) offsetof(struct list_values, name)
static const struct cmd_option options[] = {
    {"tag", 't', CMD_TAGS, FIELD(tag), "GLOB", NULL, 0},
    {"number", 'n', CMD_COUNT, FIELD(most), "N", NULL, 1},
};

const struct cmd cmd_schedule_list = {
    .name = "schedule list",
    CMD_OPTIONS(options, list_values),
    .max_operands = 1,
    .pages = true,
    .run = list,
};

#define ROW(name) &cmd_##name,
static const struct cmd *const commands[] = {VERBS_SCHEDULE(ROW) NULL};

const struct cmd cmd_schedule = {
    .name = "schedule",
    .commands = commands,
    CMD_OPTIONS(options, list_values),
    .pages = true,
    .run = list,
};
