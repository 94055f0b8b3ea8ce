/*
 * cmd_tags.c - dq tags: the tasks of each tag, and the handler that would run them.
 */
#include "cli/judge/fleet.h"
#include "cli/line/select.h"
#include "cli/line/verbs.h"
#include "cli/line/live.h"
#include "cli/show/progress.h"
#include "cli/show/task_columns.h"
#include "store/ask/tag_store.h"

#include "base/mem.h"

#define NAMED 5 /* of those that rest, are refused or slow */
#define TABLE_COLUMNS                                                                              \
    "tag,pending,running,done,failed,cancelled,due,late,next,paused_until,handler,pause_reason"

/* Columns that a narrow terminal does not show, the least useful first. */
#define TABLE_DROP "pause_reason,cancelled,next,done,handler,running,pending,paused_until"

struct tags_values {
    const char *tag, *columns;
    bool exact;
    int64_t watch_ms; /* -1: not given */
};

#define TAG ((const struct tag_info *)row)

OUT_GETTER(next)
{
    if (!TAG->due)
        cell_set_time(ret, TAG->next_at);
}

OUT_GETTER(paused)
{
    cell_set_bool(ret, tag_info_paused(TAG));
}

/* arg, here and below: the fleet. */
static void get_handler(const void *row, const void *arg, struct cell *ret)
{
    const struct handler_row *h;
    enum fleet_serves serves = fleet_serves(arg, TAG->tag, &h);
    if (serves == FLEET_SERVES_NOT)
        ret->colour = CELL_WARN;
    if (serves != FLEET_SERVES_UNKNOWN)
        cell_set_text(ret, h ? h->pattern : "none");
}

static void get_handled(const void *row, const void *arg, struct cell *ret)
{
    enum fleet_serves serves = fleet_serves(arg, TAG->tag, NULL);
    if (serves != FLEET_SERVES_UNKNOWN) {
        cell_set_bool(ret, serves == FLEET_SERVES);
    }
}

static const struct column columns[] = {TAG_INFO_COLUMNS(TAG_COLUMN)};

static bool any_paused(const struct tag_info *tags, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (tag_info_paused(&tags[i]))
            return true;
    return false;
}

/* A limit about which dqds disagree, and one that keeps due tasks waiting. */
static void note_limit(struct cmd_context *c, const struct fleet *fleet, const struct tag_info *t,
                       size_t *named)
{
    BUF_LOCAL struct buf b = BUF_INIT;
    MEM_LOCAL char *differ = NULL;
    fleet_limit(fleet, t->tag, &differ);
    if (differ && ++*named <= NAMED)
        cmd_note(c, "%s", differ);
    if (t->due && !tag_info_paused(t))
        fleet_put_limit(&b, fleet, t, c->style.cell.now_at);
    if (b.len && ++*named <= NAMED)
        cmd_note(c, "%s waits: %s", t->tag, b.data);
}

static int run(struct cmd_context *c, struct err *err)
{
    const struct tags_values *v = c->values;
    struct tag_info *tags;
    LOCAL_BY(fleet_done) struct fleet fleet = {0};
    struct err denied = {0};
    size_t count;
    struct progress progress;

    progress_init(&progress, c->quiet || !v->exact || c->height, "");
    int known = fleet_load(c->db, &fleet, &denied);
    int rc = fleet_list_tags(
        &fleet, c->db, v->tag,
        &(struct tag_count_how){.exact = v->exact, .progress = progress_counting, .arg = &progress},
        &tags, &count, &c->style.cell.now_at, err);
    progress_clear(&progress);
    if (rc < 0)
        return rc;
    out_all(&c->style,
            OUT_OF(columns, TABLE_COLUMNS,
                   any_paused(tags, count) ? TABLE_DROP : "paused_until," TABLE_DROP, v->columns),
            &fleet, tags, sizeof *tags, count);
    rc = out_flush(err);
    if (rc == 0 && count == 0)
        select_note_none(c, "no tag matches", v->tag);
    const struct handler_rest *rest;
    size_t named = 0;
    for (size_t i = 0; rc == 0 && known == 0 && i < count && named < NAMED; i++)
        if ((rest = fleet_rests(&fleet, tags[i].tag)) && ++named)
            cmd_note(c, "%s %s: %s", tags[i].tag, fleet_reasons[rest->reason], rest->error);
    for (size_t i = 0; rc == 0 && known == 0 && i < count && named < NAMED; i++)
        note_limit(c, &fleet, &tags[i], &named);
    if (rc == 0 && known < 0)
        cmd_note(c, "the handlers are not known: %s", denied.text);
    else if (rc == 0)
        fleet_say_dqds(c, &fleet);
    tag_store_free(tags, count);
    return rc;
}

#define FIELD(name) offsetof(struct tags_values, name)
static const struct cmd_option options[] = {
    {"tag", 't', CMD_TAGS, FIELD(tag), "GLOB", NULL, 0},
    {"exact", 0, CMD_FLAG, FIELD(exact), NULL, NULL, 0},
    CMD_COLUMNS(FIELD(columns)),
    LIVE_OPTION(FIELD(watch_ms)),
};

const struct cmd cmd_tags = {
    .name = "tags",
    CMD_OPTIONS(options, tags_values),
    .columns = OUT_OF(columns),
    .pages = true,
    .run = run,
};
