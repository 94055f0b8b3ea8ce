/*
 * cmd_stats.c - dq stats: how much there is, how late things start, how fast they are done.
 *
 * Each tag is one row that joins the counts (all tasks) with what was measured in the window; the
 * first row is all tags together.
 */
#include "cli/tag_columns.h"
#include "cli/verbs.h"
#include "store/tag_lateness.h"
#include "store/tag_store.h"

#include "base/mem.h"
#include "base/text.h"
#include "base/when.h"

#include <stdlib.h>
#include <string.h>

#define DEFAULT_WINDOW_HOURS 1

struct stats_values {
    const char *tag;
    int64_t window_ms;
    bool exact;
};

struct stats_row {
    /* first, as TAG_COUNT_COLUMNS wants it; its tag is NULL in the row of all */
    struct tag_info info;
    const struct tag_lateness *late; /* NULL: nothing started in the window */
};

#define ROW ((const struct stats_row *)row)
#define GETTER(name)                                                                               \
    static void get_##name(const void *row, const void *arg __attribute__((unused)),               \
                           struct cell *ret)

GETTER(tag)
{
    cell_set_text(ret, ROW->info.tag);
    if (!ROW->info.tag)
        ret->people = "(all)";
}

/* The lateness of the task that has waited longest. */
GETTER(late)
{
    cell_set_since(ret, ROW->info.oldest_due_at);
}

static void set_lateness(struct cell *ret, const struct stats_row *r, int64_t ms)
{
    if (r->late && r->late->started > 0)
        cell_set_duration(ret, ms);
}

GETTER(starts)
{
    cell_set_number(ret, ROW->late ? ROW->late->started : 0);
    ret->capped = ROW->late && ROW->late->sampled;
}

GETTER(p50)
{
    set_lateness(ret, ROW, ROW->late ? ROW->late->p50_ms : 0);
}

GETTER(p95)
{
    set_lateness(ret, ROW, ROW->late ? ROW->late->p95_ms : 0);
}

GETTER(p99)
{
    set_lateness(ret, ROW, ROW->late ? ROW->late->p99_ms : 0);
}

GETTER(max)
{
    set_lateness(ret, ROW, ROW->late ? ROW->late->max_ms : 0);
}

GETTER(window_done)
{
    cell_set_number(ret, ROW->late ? ROW->late->done : 0);
}

GETTER(window_failed)
{
    cell_set_number(ret, ROW->late ? ROW->late->failed : 0);
}

GETTER(rate)
{
    ret->kind = CELL_REAL;
    ret->real = ROW->late ? ROW->late->done_per_second : 0;
}

static const struct out_column columns[] = {
    {"tag", false, OUT_NARROW, "", get_tag},
    TAG_COUNT_COLUMNS,
    {"late", true, 0, "", get_late},
    {"starts", true, 0, "", get_starts},
    {"late_p50", true, 0, "", get_p50},
    {"late_p95", true, 0, "", get_p95},
    {"late_p99", true, 0, "", get_p99},
    {"late_max", true, 0, "", get_max},
    {"ended_done", true, 0, "", get_window_done},
    {"ended_failed", true, 0, "", get_window_failed},
    {"done_per_s", true, 0, "", get_rate},
};
#define COLUMN_COUNT (sizeof columns / sizeof columns[0])
#define COUNT_COLUMNS "tag,pending,running,done,failed,cancelled,due,late"
#define WINDOW_COLUMNS                                                                             \
    "tag,starts,late_p50,late_p95,late_p99,late_max,ended_done,ended_failed,done_per_s"

static void add_to_all(struct tag_info *all, const struct tag_info *t)
{
    for (int s = 0; s < TASK_STATUS_COUNT; s++) {
        all->count[s] += t->count[s];
        all->capped[s] |= t->capped[s];
    }
    all->due += t->due;
    all->due_capped |= t->due_capped;
    if (t->oldest_due_at != TASK_TIME_NONE &&
        (all->oldest_due_at == TASK_TIME_NONE || t->oldest_due_at < all->oldest_due_at))
        all->oldest_due_at = t->oldest_due_at;
}

static int compare_tag(const void *key, const void *element)
{
    return strcmp(key, ((const struct tag_lateness *)element)->tag);
}

/* The first entry is the one for all. */
static const struct tag_lateness *find_lateness(const struct tag_lateness *late, size_t count,
                                                const char *tag)
{
    return count > 1 ? bsearch(tag, late + 1, count - 1, sizeof *late, compare_tag) : NULL;
}

/* measured: only the first row and those of tags that started something. */
static int put_rows(struct cmd_context *c, const struct stats_row *rows, size_t count,
                    const char *names, bool measured, struct err *err)
{
    struct out *out;
    int rc = out_new(&out, &c->style, columns, COLUMN_COUNT, names, NULL, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || !measured || (rows[i].late && rows[i].late->started > 0))
            out_row(out, &rows[i]);
    }
    out_free(out);
    return 0;
}

/* For people two tables, as one would be too wide. */
static int put_tables(struct cmd_context *c, const struct stats_row *rows, size_t count,
                      int64_t window_ms, struct err *err)
{
    struct buf b = BUF_INIT;
    char text[WHEN_TEXT_SIZE];
    int rc = put_rows(c, rows, count, COUNT_COLUMNS, false, err);
    buf_printf(&b, "\ntasks due in the last %s: how late they started, how they ended\n",
               when_format_rough(text, window_ms));
    out_write(&b);
    buf_done(&b);
    return rc < 0 ? rc : put_rows(c, rows, count, WINDOW_COLUMNS, true, err);
}

static int run(struct cmd_context *c, const void *values, struct err *err)
{
    const struct stats_values *v = values;
    if (v->window_ms == 0)
        return err_set(err, ERR_USAGE, "--since must be longer than 0, such as 1h");
    int64_t window_ms = v->window_ms > 0 ? v->window_ms : DEFAULT_WINDOW_HOURS * WHEN_HOUR;
    struct tag_info *tags = NULL;
    struct tag_lateness *late = NULL;
    struct stats_row *rows = NULL;
    size_t count = 0, late_count = 0;
    int rc = tag_store_list(c->db, v->tag, v->exact, &tags, &count, &c->style.cell.now_at, err);
    if (rc == 0)
        rc = tag_lateness_list(c->db, v->tag, window_ms, &late, &late_count, err);
    if (rc < 0)
        goto out;
    rows = mem_zero(count + 1, sizeof *rows);
    rows[0].info.oldest_due_at = TASK_TIME_NONE;
    rows[0].late = late_count ? late : NULL;
    for (size_t i = 0; i < count; i++) {
        rows[i + 1] = (struct stats_row){tags[i], find_lateness(late, late_count, tags[i].tag)};
        add_to_all(&rows[0].info, &tags[i]);
    }
    rc = c->style.format == OUT_TABLE ? put_tables(c, rows, count + 1, window_ms, err)
                                      : put_rows(c, rows, count + 1, NULL, false, err);
out:
    free(rows);
    tag_lateness_free(late, late_count);
    tag_store_free(tags, count);
    return rc;
}

#define FIELD(name) offsetof(struct stats_values, name)
/* clang-format off */
static const struct cmd_option options[] = {
    {"since", 0, CMD_DURATION, FIELD(window_ms), "D",
     "report lateness and throughput of the last D; default: " TEXT_OF(DEFAULT_WINDOW_HOURS) "h", NULL, 0},
    {"tag", 't', CMD_TEXT, FIELD(tag), "GLOB", "only tags that match", NULL, 0},
    {"exact", 0, CMD_FLAG, FIELD(exact), NULL, "count more than 10,000 tasks of a state, however long it takes", NULL, 0},
};
/* clang-format on */

const struct cmd cmd_stats = {
    .name = "stats",
    .group = "tags and statistics",
    .summary = "show counts by tag and state, lateness, throughput",
    .usage = "[--since D] [--tag GLOB] [--exact]",
    .details =
        "Lateness is the time from a task's due time to the start of its last attempt, by the database's clock: median, "
        "percentiles and maximum. The first row is for all tags together; in json its tag is null.",
    CMD_OPTIONS(options),
    .values_size = sizeof(struct stats_values),
    .level = CMD_SCHEMA,
    .reads_only = true,
    .formats = OUT_NO_ID,
    .examples = "dq stats --since 1h\n"
                "dq stats --since 10m -t \"mail.*\" -o json",
    .run = run,
};
