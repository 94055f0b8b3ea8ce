/*
 * cmd_errors.c - dq errors: what fails, how often, since when, and how to retry it.
 */
#include "cli/judge/failures.h"
#include "cli/line/select.h"
#include "cli/line/verbs.h"
#include "cli/line/live.h"

#include "base/mem.h"
#include "base/task.h"
#include "base/text.h"
#include "base/when.h"

#include <string.h>

#define DEFAULT_WINDOW_HOURS 24
/* A table shows this many lines to retry tasks with. */
#define RETRY_LINES 10

struct errors_values {
    const char *tag;
    struct cmd_when since, until;
    bool exact;
    int64_t watch_ms; /* -1: not given */
};

struct found {
    struct failures failures;
    const struct errors_values *values;
    bool sampled;
};

#define GROUP ((const struct failures_group *)row)

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

OUT_GETTER(first)
{
    cell_set_time(ret, GROUP->first_at);
    ret->brief = true;
}

OUT_GETTER(last)
{
    cell_set_time(ret, GROUP->last_at);
    ret->brief = true;
}

/* For the tasks that are counted: those that failed in the time that was asked for. If it may take
 * more, it changes nothing. */
static void put_retry(struct buf *b, const struct failures_group *g, const struct found *f)
{
    const char *since = f->values->since.text, *until = f->values->until.text;

    buf_str(b, "dq retry --tag ");
    MEM_LOCAL char *glob = task_tag_as_glob(g->tag);
    text_shell_word(b, glob);
    buf_str(b, " --error ");
    text_shell_word(b, g->pattern);
    buf_str(b, " --finished-since ");
    text_shell_word(b, since ? since : TEXT_OF(DEFAULT_WINDOW_HOURS) "h");
    if (until) {
        buf_str(b, " --finished-before ");
        text_shell_word(b, until);
    }
    if (!failures_alone(&f->failures, g, glob))
        buf_str(b, " --dry-run  # it may take other errors, too: see which, then name the ids");
}

static void get_retry(const void *row, const void *arg, struct cell *ret)
{
    struct buf *line = cell_buffer();
    if (GROUP->failed == 0)
        return;
    put_retry(line, GROUP, arg);
    cell_set_text(ret, line->data);
}

static void get_sampled(const void *row __attribute__((unused)), const void *arg, struct cell *ret)
{
    cell_set_bool(ret, ((const struct found *)arg)->sampled);
}

static const struct column columns[] = {
    OUT_FIELD(failures_group, "tag", TEXT, tag, COLUMN_NARROW),
    OUT_FIELD(failures_group, "error", TEXT, pattern, 100),
    OUT_GET("failures", U64, 0, get_failures),
    OUT_GET("failed", U64, 0, get_failed),
    OUT_GET("retrying", U64, 0, get_retrying),
    OUT_GET("first", TIME, 0, get_first),
    OUT_GET("last", TIME, 0, get_last),
    OUT_FIELD(failures_group, "id", U64, id, 0),
    OUT_GET("sampled", BOOL, 0, get_sampled),
    OUT_GET("retry", TEXT, 0, get_retry),
};
static const struct out_table *const table =
    OUT_OF(columns, "tag,error,failures,failed,retrying,first,last,id", "id,retrying,last");

/* For people: the commands, whole, below the table. */
static void put_retries(const struct found *found)
{
    const struct failures *f = &found->failures;
    struct buf b = BUF_INIT;
    size_t count = 0;
    for (size_t i = 0; i < f->count; i++) {
        if (f->items[i].failed == 0 || ++count > RETRY_LINES)
            continue;
        BUF_LOCAL struct buf line = BUF_INIT;
        buf_str(&b, count == 1 ? "\nto retry the tasks that have failed:\n  " : "  ");
        put_retry(&line, &f->items[i], found);
        for (const char *p = line.data; *p; p += strcspn(p, "\\")) {
            for (; *p == '\\'; p++)
                buf_chr(&b, *p); /* it is for the shell */
            text_escape(&b, p, strcspn(p, "\\"), 0);
        }
        buf_chr(&b, '\n');
    }
    if (count > RETRY_LINES)
        buf_printf(&b, "  and %zu more: dq errors -o json has each\n", count - RETRY_LINES);
    out_take(&b);
}

/* Rows are marked. If there is none, only this and the exit status tell it from "nothing fails". */
static void say_sampled(struct cmd_context *c, const struct found *found, int64_t left_at)
{
    BUF_LOCAL struct buf since = BUF_INIT;

    cell_put_time(&since, &c->style.cell, left_at, false);
    if (found->failures.count)
        cmd_note(c, "only the failures since %s and the oldest %d were read; --exact reads all",
                 since.data, FAILURES_OLDEST);
    else
        cmd_complain(c,
                     "none found, but only the failures since %s and the oldest %d were read; "
                     "--exact reads all",
                     since.data, FAILURES_OLDEST);
}

static int run(struct cmd_context *c, struct err *err)
{
    const struct errors_values *v = c->values;
    struct found found = {.values = v};
    struct failure_filter filter = {.tag_glob = v->tag};
    int64_t left_at = TASK_TIME_NONE;
    int rc = cmd_now(c, &c->style.cell.now_at, err);
    filter.since_at = c->style.cell.now_at - DEFAULT_WINDOW_HOURS * WHEN_HOUR;
    filter.before_at = WHEN_AT_MAX; /* a clock may have been set back */
    if (!v->exact) {
        filter.newest = FAILURES_NEWEST;
        filter.oldest = FAILURES_OLDEST;
        filter.most_ms = FAILURES_NEWEST_MS;
    }
    if (rc == 0)
        rc = cmd_resolve(c, &v->since, &filter.since_at, err);
    if (rc == 0)
        rc = cmd_resolve(c, &v->until, &filter.before_at, err);
    if (rc == 0)
        rc = failure_list(c->db, &filter, failures_add, &found.failures, &left_at, err);
    found.sampled = left_at != TASK_TIME_NONE;
    failures_sort(&found.failures);
    if (rc == 0)
        out_all(&c->style, table, &found, found.failures.items, sizeof *found.failures.items,
                found.failures.count);
    if (rc == 0 && c->style.format == OUT_TABLE)
        put_retries(&found);
    if (rc == 0 && found.sampled)
        say_sampled(c, &found, left_at);
    else if (rc == 0 && found.failures.count == 0)
        select_note_none(c, "nothing failed in that time", v->tag);
    failures_done(&found.failures);
    return rc;
}

#define FIELD(name) offsetof(struct errors_values, name)
static const struct cmd_option options[] = {
    {"since", 0, CMD_SINCE, FIELD(since), "TIME|D", NULL, 0},
    {"until", 0, CMD_SINCE, FIELD(until), "TIME|D", NULL, 0},
    {"tag", 't', CMD_TAGS, FIELD(tag), "GLOB", NULL, 0},
    {"exact", 0, CMD_FLAG, FIELD(exact), NULL, NULL, 0},
    LIVE_OPTION(FIELD(watch_ms)),
};

const struct cmd cmd_errors = {
    .name = "errors",
    CMD_OPTIONS(options, errors_values),
    .pages = true,
    .formats = OUT_NO_ID,
    .run = run,
};
