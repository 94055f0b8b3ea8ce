/*
 * cmd_list.c - dq list: tasks as rows, streamed.
 */
#include "cli/judge/fleet.h"
#include "cli/line/select.h"
#include "cli/line/verbs.h"
#include "cli/line/live.h"
#include "cli/show/task_columns.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/param.h>
#include <unistd.h>

#define TERMINAL_LIMIT 50
#define FAILED_MOST 10000   /* more are not counted */
#define SEARCH_MOST 10000   /* tasks that do not match, before a list with a limit gives up */
#define WATCH_OTHER_LINES 7 /* beside tasks: the title, a blank line, the heading, and notes */
#define TABLE_COLUMNS "id,tag,key,status,attempt,due_in,late,took,expected,error"
/* For a narrow terminal: due_in and late say the same as expected, a finished task has no due_in.
 */
#define WAITING_COLUMNS "id,tag,key,late,expected,waits"
#define LIVE_DROP "expected,took"
#define FINISHED_DROP "due_in,expected,took"

struct list_values {
    struct select_values select;
    int64_t limit;
    int sort;
    const char *columns;
    bool no_header, waiting;
    int64_t watch_ms; /* -1: not given */
};

static const char *const sort_names[] = {[SORT_EXPECTED] = "expected",
                                         [SORT_EXPECTED_DESC] = "-expected",
                                         [SORT_ID] = "id",
                                         [SORT_ID_DESC] = "-id",
                                         [SORT_LATE] = "late",
                                         [SORT_CREATED] = "created",
                                         [SORT_FINISHED] = "finished",
                                         NULL};

static bool names_body(const char *columns)
{
    for (const char *s = columns; s; s = strchr(s, ',') ? strchr(s, ',') + 1 : NULL) {
        if (strcspn(s, ",") == 4 && memcmp(s, "body", 4) == 0)
            return true;
    }
    return false;
}

struct listing {
    struct out *out;
    size_t rows, limit; /* limit 0: none */
    bool more;          /* there was one beyond the limit */
};

static int each_task(const struct task *t, void *arg)
{
    struct listing *l = arg;
    if (l->limit != 0 && l->rows == l->limit) {
        l->more = true;
        return 1;
    }
    out_row(l->out, t);
    l->rows++;
    return out_failed();
}

/* ---- without a filter: what runs, what is late, what is next, what is paused ---- */

enum { PART_RUNNING, PART_LATE, PART_NEXT, PART_PAUSED, PART_COUNT };

/* Each part may take what the parts before it have left, less some fifths of the limit that are
 * kept for the parts behind it. */
static size_t part_limit(int part, bool any_paused, size_t limit, size_t rows)
{
    static const size_t kept_fifths[2][PART_COUNT] = {
        {[PART_RUNNING] = 3, [PART_LATE] = 1},
        {[PART_RUNNING] = 3, [PART_LATE] = 2, [PART_NEXT] = 1}};
    size_t kept = limit * kept_fifths[any_paused][part] / 5;
    return limit == 0 ? 0 : limit - kept > rows ? limit - kept - rows : 0;
}

static struct task_filter part_filter(int part, int64_t now_at)
{
    struct task_filter f = {.statuses = TASK_BIT(TASK_PENDING), .sort = SORT_EXPECTED};
    struct task_filter_bound now = {true, now_at};
    if (part == PART_RUNNING)
        f.statuses = TASK_BIT(TASK_RUNNING) | TASK_BIT(TASK_STATUS_UNKNOWN);
    else if (part == PART_LATE)
        f.before[TASK_FILTER_DUE] = now;
    else if (part == PART_NEXT)
        f.since[TASK_FILTER_DUE] = now;
    f.pause = part == PART_RUNNING  ? TASK_FILTER_ALL_TAGS
              : part == PART_PAUSED ? TASK_FILTER_PAUSED
                                    : TASK_FILTER_NOT_PAUSED;
    return f;
}

/* The end of a note. If the screen is the limit, no option lists more. */
static const char *how_to_list_more(const struct list_values *v)
{
    return v->watch_ms < 0 ? "; -n N lists more, -n 0 all" : "";
}

/* After the table: what it does not show, and how to see it. */
static int note_rest(struct cmd_context *c, const struct list_values *v, const bool *more,
                     size_t rows, struct err *err)
{
    static const char *const names[PART_COUNT] = {"running", "late", "next", "paused"};
    BUF_LOCAL struct buf cut = BUF_INIT;
    uint64_t failed = 0;
    int rc = task_list_count(c->db, TASK_BIT(TASK_FAILED), FAILED_MOST + 1, &failed, err);
    for (int part = 0; part < PART_COUNT; part++)
        if (more[part])
            buf_printf(&cut, "%s%s", cut.len ? ", " : "", names[part]);
    if (rc == 0 && cut.len)
        cmd_note(c, "only %zu %s listed, there are more (%s)%s", rows,
                 rows == 1 ? "task is" : "tasks are", cut.data, how_to_list_more(v));
    if (rc == 0 && failed)
        cmd_note(c, "%" PRIu64 "%s %s failed: dq errors shows why, dq list -s failed lists them",
                 MIN(failed, (uint64_t)FAILED_MOST), failed > FAILED_MOST ? "+" : "",
                 failed == 1 ? "task has" : "tasks have");
    return rc;
}

static int see_one(const struct task *t, void *arg)
{
    (void)t;
    *(bool *)arg = true;
    return 1;
}

static int list_overview(struct cmd_context *c, const struct list_values *v, struct out *out,
                         struct task_columns_arg *arg, size_t limit, bool bodies, struct err *err)
{
    bool more[PART_COUNT] = {false}, any_paused = false;
    struct task_filter paused = part_filter(PART_PAUSED, c->style.cell.now_at);
    size_t rows = 0;
    paused.limit = 1;
    int rc = task_list(c->db, &paused, false, see_one, &any_paused, err);
    if (rc == ERR_DENIED) /* this account may not read which tags are paused */
        rc = 0;
    for (int part = 0; rc >= 0 && part < (any_paused ? PART_COUNT : PART_PAUSED) && !out_failed();
         part++) {
        struct task_filter f = part_filter(part, c->style.cell.now_at);
        struct listing l = {.out = out, .limit = part_limit(part, any_paused, limit, rows)};
        if (!any_paused)
            f.pause = TASK_FILTER_ALL_TAGS;
        f.limit = limit ? l.limit + 1 : 0;
        arg->paused = part == PART_PAUSED;
        if (limit && l.limit == 0)
            continue;
        rc = task_list(c->db, &f, bodies, each_task, &l, err);
        more[part] = l.more;
        rows += l.rows;
    }
    rc = out_end(out, rc);
    if (rc >= 0 && rows == 0)
        select_note_none(c, "no task is pending or running", NULL);
    return rc < 0 ? rc : note_rest(c, v, more, rows, err);
}

/* ---- what is due and has not started, and why ---- */

struct waits {
    struct task_columns_arg task; /* first: the columns of tasks take the whole for it */
    struct fleet fleet;
    struct tag_info *tags;
    size_t count;
    int64_t now_at;
};

static int load_waits(struct cmd_context *c, const char *tag, struct waits *ret, struct err *err)
{
    int rc = fleet_load(c->db, &ret->fleet, err);
    if (rc == 0)
        rc = fleet_list_tags(&ret->fleet, c->db, tag, &(struct tag_count_how){.exact = false},
                             &ret->tags, &ret->count, &ret->now_at, err);
    return rc;
}

static void waits_done(struct waits *w)
{
    tag_store_free(w->tags, w->count);
    fleet_done(&w->fleet);
}

static void get_waits(const void *row, const void *arg, struct cell *ret)
{
    struct buf *b = cell_buffer();
    const struct waits *w = arg;
    const struct task *t = row;
    for (size_t i = 0; i < w->count; i++)
        if (strcmp(w->tags[i].tag, t->tag) == 0)
            fleet_put_waits(b, &w->fleet, &w->tags[i], w->now_at);
    if (b->len)
        cell_set_text(ret, b->data);
}

static const struct column waits_column =
    OUT_GET("waits", TEXT, 0, get_waits); /* behind those of tasks */
#define COUNT_ONE(...) +1                 /* NOLINT(bugprone-macro-parentheses): a term of a sum */
enum { COLUMNS_MOST = 1 TASK_COLUMNS(COUNT_ONE) };

/* ---- with a filter, or for programs ---- */

static bool is_overview(const struct cmd_context *c, const struct list_values *v)
{
    return c->style.format == OUT_TABLE && !v->select.statuses && !select_given(&v->select) &&
           v->sort < 0 && !v->waiting;
}

/* Only finished tasks can match a time at which they finished. */
static unsigned default_statuses(const struct list_values *v)
{
    const struct select_values *s = &v->select;

    if (s->since[TASK_FILTER_FINISHED].text || s->before[TASK_FILTER_FINISHED].text ||
        v->sort == SORT_FINISHED)
        return TASK_FINISHED;
    if (v->sort == SORT_LATE || v->waiting)
        return TASK_BIT(TASK_PENDING);
    return TASK_LIVE | TASK_BIT(TASK_FAILED) | TASK_BIT(TASK_STATUS_UNKNOWN);
}

/* One list. limit 0: all. */
static int answer(struct cmd_context *c, const struct list_values *v, size_t limit, struct err *err)
{
    struct task_filter_search search = {.most = SEARCH_MOST};
    struct listing l = {.limit = limit};
    LOCAL_BY(waits_done) struct waits arg = {.task.paused = false};
    struct column columns[COLUMNS_MOST];
    struct task_filter f;
    bool unordered = false;
    int rc = select_filter(c, &v->select, default_statuses(v), &f, err);
    if (rc == 0)
        rc = cmd_now(c, &c->style.cell.now_at, err);
    if (rc == 0 && v->waiting)
        rc = load_waits(c, v->select.tag, &arg, err);
    if (rc != 0)
        return rc;
    if (v->waiting && !f.before[TASK_FILTER_DUE].set)
        f.before[TASK_FILTER_DUE] = (struct task_filter_bound){true, c->style.cell.now_at};
    f.sort = v->sort >= 0             ? (enum task_sort)v->sort
             : f.statuses & TASK_LIVE ? SORT_EXPECTED
                                      : SORT_EXPECTED_DESC;
    /* one more shows that there are more, unless it was said how many are wanted */
    f.limit = limit && (size_t)MAX(v->limit, 0) != limit ? limit + 1 : limit;
    f.search = f.limit ? &search : NULL;
    f.unordered = &unordered;
    memcpy(columns, task_columns, task_column_count * sizeof *columns);
    columns[task_column_count] = waits_column;
    const struct out_table table = {columns, task_column_count + v->waiting,
                                    v->waiting ? WAITING_COLUMNS : TABLE_COLUMNS,
                                    v->waiting               ? NULL
                                    : f.statuses & TASK_LIVE ? LIVE_DROP
                                                             : FINISHED_DROP,
                                    v->columns};
    rc = out_check(&table, err);
    if (rc < 0)
        return rc;
    l.out = out_new(&c->style, &table, &arg);
    bool bodies = v->columns ? names_body(v->columns) && c->style.format != OUT_ID
                             : c->style.format != OUT_ID && c->style.format != OUT_TABLE;
    if (is_overview(c, v))
        rc = list_overview(c, v, l.out, &arg.task, limit, bodies, err);
    else
        rc = out_end(l.out, task_list(c->db, &f, bodies, each_task, &l, err));
    if (rc >= 0 && l.rows == 0 && !is_overview(c, v) && !search.partial)
        select_note_none(c, "no task matches", v->select.tag);
    if (rc >= 0 && l.more)
        cmd_note(c, "only the first %zu %s listed%s", l.rows, l.rows == 1 ? "task is" : "tasks are",
                 how_to_list_more(v));
    if (rc >= 0 && search.partial && f.sort == SORT_CREATED)
        cmd_note(c, "only the newest %d tasks of all tags were looked at; -n 0 looks at all",
                 SEARCH_MOST);
    else if (rc >= 0 && search.partial && f.sort >= SORT_LATE)
        cmd_note(c, "only %d tasks were sorted; a narrower filter or -n 0 sorts all", SEARCH_MOST);
    else if (rc >= 0 && search.partial)
        cmd_note(
            c,
            "only %d tasks were searched, there may be more; a narrower filter or -n 0 finds all",
            SEARCH_MOST);
    if (rc >= 0)
        select_note_unordered(c, unordered);
    if (rc >= 0 && f.statuses & TASK_LIVE)
        fleet_note_dqds(c);
    return rc < 0 ? rc : 0;
}

/* ---- the verb ---- */

static int run(struct cmd_context *c, struct err *err)
{
    const struct list_values *v = c->values;
    if (v->waiting && v->select.statuses & ~TASK_BIT(TASK_PENDING))
        return err_set(err, ERR_USAGE, "--waiting lists pending tasks: leave --status out");
    bool paged = v->limit < 0 && c->style.format == OUT_TABLE && isatty(STDOUT_FILENO);
    size_t limit = paged ? TERMINAL_LIMIT : (size_t)MAX(v->limit, 0);
    if (c->height) { /* as many tasks as the screen has room for */
        limit = c->height > WATCH_OTHER_LINES ? c->height - WATCH_OTHER_LINES : 1;
        limit = v->limit > 0 ? MIN((size_t)v->limit, limit) : limit;
    }
    c->style.no_header = v->no_header;
    return answer(c, v, limit, err);
}

#define FIELD(name) offsetof(struct list_values, name)
static const struct cmd_option options[] = {
    SELECT_OPTIONS(struct list_values, select.),
    {"limit", 'n', CMD_COUNT, FIELD(limit), "N", NULL, 0},
    {"sort", 0, CMD_CHOICE, FIELD(sort), "BY", sort_names, 0},
    {"waiting", 0, CMD_FLAG, FIELD(waiting), NULL, NULL, 0},
    CMD_COLUMNS(FIELD(columns)),
    {"no-header", 0, CMD_FLAG, FIELD(no_header), NULL, NULL, 0},
    LIVE_OPTION(FIELD(watch_ms)),
};

const struct cmd cmd_list = {
    .name = "list",
    .alias = "ls",
    CMD_OPTIONS(options, list_values),
    .pages = true,
    .formats = OUT_ANY | OUT_BIT(OUT_CSV),
    .run = run,
};
