/*
 * cmd_errors.c - dq errors: what fails, how often, since when, and how to retry it.
 */
#include "cli/failures.h"
#include "cli/verbs.h"

#include "base/task.h"
#include "base/text.h"
#include "base/when.h"

#include <string.h>

#define DEFAULT_WINDOW_HOURS 24
/* What is read without --exact: it takes less than 100 ms, however many failures there are. */
#define NEWEST 5000
#define OLDEST 1000
/* A table shows this many lines to retry tasks with. */
#define RETRY_LINES 10

struct errors_values {
    const char *tag;
    struct cmd_when since;
    bool exact;
};

struct found {
    struct failures failures;
    const char *glob; /* NULL: all tags */
    bool sampled;
};

#define GROUP ((const struct failures_group *)row)
#define GETTER(name)                                                                               \
    static void get_##name(const void *row, const void *arg __attribute__((unused)),               \
                           struct cell *ret)

GETTER(tag)
{
    cell_set_text(ret, GROUP->tag);
}

GETTER(error)
{
    cell_set_text(ret, GROUP->pattern);
}

/* arg: struct found */
static void set_count(struct cell *ret, uint64_t count, const void *arg)
{
    cell_set_number(ret, count);
    ret->capped = ((const struct found *)arg)->sampled;
}

static void get_failures(const void *row, const void *arg, struct cell *ret)
{
    set_count(ret, GROUP->failures, arg);
}

static void get_failed(const void *row, const void *arg, struct cell *ret)
{
    set_count(ret, GROUP->failed, arg);
    ret->colour = GROUP->failed ? CELL_BAD : CELL_PLAIN;
}

static void get_retrying(const void *row, const void *arg, struct cell *ret)
{
    set_count(ret, GROUP->retrying, arg);
}

GETTER(first)
{
    cell_set_time(ret, GROUP->first_at);
    ret->brief = true;
}

GETTER(last)
{
    cell_set_time(ret, GROUP->last_at);
    ret->brief = true;
}

GETTER(id)
{
    cell_set_number(ret, GROUP->id);
}

static void put_retry(struct buf *b, const struct failures_group *g)
{
    buf_str(b, "dq retry --tag ");
    text_shell_word(b, g->tag);
    buf_str(b, " --error ");
    text_shell_word(b, g->pattern);
}

GETTER(retry)
{
    static struct buf line = BUF_INIT;
    if (GROUP->failed == 0)
        return;
    buf_reset(&line);
    put_retry(&line, GROUP);
    cell_set_text(ret, line.data);
}

static void get_sampled(const void *row __attribute__((unused)), const void *arg, struct cell *ret)
{
    ret->kind = CELL_BOOL;
    ret->number = ((const struct found *)arg)->sampled;
}

static const struct out_column columns[] = {
    {"tag", false, OUT_NARROW, "", get_tag}, {"error", false, 100, "", get_error},
    {"failures", true, 0, "", get_failures}, {"failed", true, 0, "", get_failed},
    {"retrying", true, 0, "", get_retrying}, {"first", false, 0, "", get_first},
    {"last", false, 0, "", get_last},        {"id", true, 0, "", get_id},
    {"sampled", false, 0, "", get_sampled},  {"retry", false, 0, "", get_retry},
};
#define COLUMN_COUNT (sizeof columns / sizeof columns[0])
#define TABLE_COLUMNS "tag,error,failures,failed,retrying,first,last,id"

static void take_failure(const struct failure *x, void *arg)
{
    struct found *f = arg;
    if (!f->glob || task_tag_glob(f->glob, x->tag))
        failures_add(&f->failures, x);
}

/* For people: the commands, whole, below the table. */
static void put_retries(const struct failures *f)
{
    struct buf b = BUF_INIT;
    size_t shown = 0;
    for (size_t i = 0; i < f->count && shown < RETRY_LINES; i++) {
        if (f->items[i].failed == 0)
            continue;
        struct buf line = BUF_INIT;
        buf_str(&b, shown++ == 0 ? "\nto retry the tasks that have failed:\n  " : "  ");
        put_retry(&line, &f->items[i]);
        text_escape(&b, line.data, line.len, 0);
        buf_chr(&b, '\n');
        buf_done(&line);
    }
    out_write(&b);
    buf_done(&b);
}

static int run(struct cmd_context *c, const void *values, struct err *err)
{
    const struct errors_values *v = values;
    struct found found = {.glob = v->tag};
    struct failure_filter filter = {.newest = v->exact ? 0 : NEWEST,
                                    .oldest = v->exact ? 0 : OLDEST};
    struct out *out;
    bool people = c->style.format == OUT_TABLE;
    int rc = cmd_now(c, &c->style.cell.now_at, err);
    filter.since_at = c->style.cell.now_at - DEFAULT_WINDOW_HOURS * WHEN_HOUR;
    if (rc == 0)
        rc = cmd_resolve(c, &v->since, &filter.since_at, err);
    if (rc == 0)
        rc = failure_list(c->db, &filter, take_failure, &found, &found.sampled, err);
    if (rc == 0)
        rc = out_new(&out, &c->style, columns, COLUMN_COUNT, people ? TABLE_COLUMNS : NULL, &found,
                     err);
    if (rc < 0)
        goto out;
    failures_sort(&found.failures);
    for (size_t i = 0; i < found.failures.count; i++)
        out_row(out, &found.failures.items[i]);
    out_free(out);
    if (people)
        put_retries(&found.failures);
    if (found.sampled)
        cmd_note(c, "only the newest %d failures and the oldest %d were read; --exact reads all",
                 NEWEST, OLDEST);
out:
    failures_done(&found.failures);
    return rc;
}

#define FIELD(name) offsetof(struct errors_values, name)
/* clang-format off */
static const struct cmd_option options[] = {
    {"since", 0, CMD_SINCE, FIELD(since), "TIME|D",
     "failures at TIME or later, or in the last D; default: " TEXT_OF(DEFAULT_WINDOW_HOURS) "h", NULL, 0},
    {"tag", 't', CMD_TEXT, FIELD(tag), "GLOB", "only of tags that match", NULL, 0},
    {"exact", 0, CMD_FLAG, FIELD(exact), NULL, "read all failures, however long it takes", NULL, 0},
};
/* clang-format on */

const struct cmd cmd_errors = {
    .name = "errors",
    .group = "tags and statistics",
    .summary = "show what fails, how often, since when",
    .usage = "[--since TIME|D] [--tag GLOB] [--exact]",
    .details =
        "Groups failed attempts by tag and error; in an error, * stands for numbers, ids and quoted words. Shows the tasks that "
        "have failed for good and those that run again, the first and the last time, the last task, and the command to retry them.",
    .examples = "dq errors --since 1h\ndq errors --tag 'mail.*' -o json",
    CMD_OPTIONS(options),
    .values_size = sizeof(struct errors_values),
    .level = CMD_SCHEMA,
    .reads_only = true,
    .pages = true,
    .formats = OUT_NO_ID,
    .run = run,
};
