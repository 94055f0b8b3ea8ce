/*
 * cmd_bench.c - dq bench: how much this server and host can handle, and what limits it. src/bench
 * measures and judges; this file has the command line, the order of the steps, and the output.
 */
#include "bench/judge.h"
#include "bench/program.h"
#include "bench/statement.h"
#include "cli/line/verbs.h"
#include "cli/show/progress.h"
#include "store/schema/scratch_store.h"

#include "base/interrupt.h"
#include "base/when.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_MINUTES 1
#define LEAST_SECONDS 2
#define MOST_MINUTES 10

struct bench_values {
    int64_t for_ms;
    const char *database;
    bool clean;
};

/* ---- printing: for people a table for each kind of row, for programs one list ---- */

#define ROW ((const struct judge_row *)row)

/* For people: three digits that count, thousands apart, millions in words. */
static void put_rounded(struct buf *b, double v)
{
    if (v >= 1e9)
        buf_printf(b, "%.*f billion", v < 1e10 ? 1 : 0, v / 1e9);
    else if (v >= 1e6)
        buf_printf(b, "%.*f million", v < 1e7 ? 1 : 0, v / 1e6);
    else if (v >= 1000)
        buf_printf(b, "%d,%03d", (int)v / 1000, (int)v % 1000);
    else if (v == (double)(int)v)
        buf_printf(b, "%d", (int)v);
    else
        buf_printf(b, "%.*f", v < 10 ? 2 : v < 100 ? 1 : 0, v);
}

static void set_value(const void *arg, struct cell *ret, double v)
{
    struct buf *b = cell_buffer();
    const struct cmd_context *c = arg;

    ret->kind = CELL_REAL;
    ret->real = v;
    if (c->style.format == OUT_TABLE) {
        put_rounded(b, v);
        cell_set_text(ret, b->data);
    }
}

static void get_value(const void *row, const void *arg, struct cell *ret)
{
    if (ROW->known)
        set_value(arg, ret, ROW->value);
}

static void get_p99(const void *row, const void *arg, struct cell *ret)
{
    if (ROW->has_p99)
        set_value(arg, ret, ROW->p99);
}

OUT_GETTER(about)
{
    cell_set_text(ret, ROW->about);
    ret->colour = ROW->warn ? CELL_WARN : CELL_PLAIN;
}

static const struct column columns[] = {
    OUT_FIELD(judge_row, "kind", TEXT, kind, 0),
    OUT_FIELD(judge_row, "name", TEXT, name, 0),
    OUT_GET("value", REAL, 0, get_value),
    OUT_GET("p99", REAL, 0, get_p99),
    OUT_FIELD(judge_row, "unit", TEXT, unit, 0),
    OUT_FIELD(judge_row, "setting", CHARS, setting, COLUMN_NARROW),
    OUT_FIELD(judge_row, "now", CHARS, now, 0),
    OUT_GET("about", TEXT, COLUMN_NARROW, get_about),
};

/* kind NULL: all. */
static void put_rows(struct cmd_context *c, const struct judge_rows *rows, const char *kind,
                     const char *names)
{
    struct out *out = out_new(&c->style, OUT_OF(columns, names), c);

    for (size_t i = 0; i < rows->count; i++)
        if (!kind || strcmp(rows->items[i].kind, kind) == 0)
            out_row(out, &rows->items[i]);
    out_end(out, 0);
}

static void put(struct cmd_context *c, const struct judge_rows *rows, const char *server)
{
    static const struct {
        const char *heading, *kind, *names;
    } tables[] = {{NULL, "measure", "name,value,p99,unit,about"},
                  {"\nestimated capacity\n", "capacity", "name,value,unit,about"},
                  {"\nbottlenecks\n", "bottleneck", "name,setting,now,about"}};

    if (c->style.format != OUT_TABLE) {
        put_rows(c, rows, NULL, NULL);
        return;
    }
    out_printf("measured on %s and this host\n", server);
    for (size_t i = 0; i < MEM_COUNT(tables); i++) {
        out_printf("%s", tables[i].heading ? tables[i].heading : "");
        put_rows(c, rows, tables[i].kind, tables[i].names);
    }
}

static void put_dropped(const struct cmd_context *c, size_t dropped)
{
    if (c->style.format == OUT_TABLE)
        out_printf("%zu dropped\n", dropped);
    else if (c->style.format == OUT_TSV)
        out_printf("dropped\n%zu\n", dropped);
    else
        out_printf("{\"dropped\":%zu}\n", dropped);
}

/* ---- measuring ---- */

/* In this order: a step may use the figures of earlier ones. FIGURE_SETTLE is measured with
 * FIGURE_CLAIM. */
static const struct {
    enum figure_id id;
    int percent; /* of the time */
    const char *what;
    rig_measure *measure;
} steps[] = {
    {FIGURE_ROUND_TRIP, 3, "round trips", statement_round_trip},
    {FIGURE_COMMIT, 8, "commits of one row", statement_commit},
    {FIGURE_CONNECT, 4, "connections", statement_connect},
    {FIGURE_ADD_COMMAND, 6, "dq add", program_add_command},
    {FIGURE_ADD, 7, "single adds", statement_add},
    {FIGURE_ADD_BULK, 8, "bulk adds", statement_add_bulk},
    {FIGURE_PEEK, 3, "asking what is due", statement_peek},
    {FIGURE_CLAIM, 12, "claiming and settling", statement_claim},
    {FIGURE_SPAWN, 6, "starting processes", program_spawn_one_by_one},
    {FIGURE_SPAWN_PARALLEL, 8, "starting several processes at a time", program_spawn_parallel},
    {FIGURE_RUN, 13, "dqd, one process per task", program_run},
    {FIGURE_RUN_BATCH, 10, "dqd, batches", program_run_batch},
    {FIGURE_LATENESS, 12, "lateness", program_lateness},
};

static int run_steps(struct rig *rig, int64_t total_ms, struct progress *progress, struct err *err)
{
    int rc = 0, done = 0;

    for (size_t i = 0; rc == 0 && i < MEM_COUNT(steps) && !interrupt_asked(); i++) {
        progress_phase(progress, steps[i].what, done / 100.0);
        rc = steps[i].measure(rig, total_ms * steps[i].percent / 100, &rig->figures[steps[i].id],
                              err);
        if (rc < 0)
            err_prefix(err, "%s", steps[i].what);
        done += steps[i].percent;
    }
    return interrupt_asked() ? err_set(err, ERR_TRANSIENT, "interrupted") : rc;
}

/* ---- running ---- */

/* Databases that a killed dq bench left: drops or names them. */
static int leftovers(struct cmd_context *c, struct scratch_db *s, bool drop, struct err *err)
{
    char **names = NULL;
    size_t count = 0, dropped = 0;
    int rc = scratch_store_list(s->holder, &names, &count, err);

    for (size_t i = 0; rc == 0 && i < count; i++) {
        rc = drop ? scratch_store_drop(s->holder, names[i], err) : 0;
        if (!drop)
            cmd_note(
                c,
                "the database %s was left behind by a dq bench that was killed: dq bench --clean drops it",
                names[i]);
        else if (rc == 0 && ++dropped)
            cmd_note(c, "dropped %s", names[i]);
    }
    if (rc == 0 && drop)
        put_dropped(c, dropped);
    scratch_store_free_names(names, count);
    return rc;
}

/* In a scratch database that was made. */
static int measure(struct cmd_context *c, struct scratch_db *s, const struct bench_values *v,
                   struct err *err)
{
    LOCAL_BY(rig_done) struct rig rig = {0};
    struct judge_facts facts = {.conf = c->conf, .figures = rig.figures};
    struct progress progress;
    int64_t total_ms = v->for_ms > 0 ? v->for_ms : DEFAULT_MINUTES * WHEN_MINUTE;
    char text[WHEN_TEXT_SIZE];

    cmd_note(c, "measuring for about %s in the database %s, which is %s afterwards",
             when_format_rough(text, total_ms), s->conf.database,
             v->database ? "emptied" : "dropped");
    progress_init(&progress, c->quiet, "");
    int rc = rig_init(&rig, c->conf, s, err);
    if (rc == 0)
        rc = scratch_store_server(s->db, c->conf->mysql.database, &facts.server, err);
    if (rc == 0)
        rc = run_steps(&rig, total_ms, &progress, err);
    progress_clear(&progress);
    if (rc < 0)
        return rc;
    facts.cores = rig.cores;
    struct judge_rows rows = judge(&facts);
    put(c, &rows, db_server(s->db));
    free(rows.items);
    return 0;
}

static int check(const struct bench_values *v, struct err *err)
{
    if (v->database && *v->database == '\0')
        return err_set(err, ERR_USAGE, "--database needs the name of an empty database");
    if (v->for_ms > MOST_MINUTES * WHEN_MINUTE)
        return err_set(err, ERR_USAGE, "--for must be at most %dm", MOST_MINUTES);
    return 0;
}

static int run(struct cmd_context *c, struct err *err)
{
    const struct bench_values *v = c->values;
    int rc = check(v, err);

    if (rc == 0)
        rc = cmd_open(c, CMD_CONF, err);
    if (rc < 0)
        return rc;
    struct scratch_db *s;
    if (!v->clean)
        interrupt_catch();
    rc = scratch_db_new(&s, &c->conf->mysql, v->database, err);
    if (rc == 0)
        rc = leftovers(c, s, v->clean, err);
    if (rc == 0 && !v->clean)
        rc = scratch_db_make(s, err);
    if (rc == 0 && !v->clean)
        rc = measure(c, s, v, err);
    return scratch_db_end(s, rc, err);
}

#define FIELD(name) offsetof(struct bench_values, name)
static const struct cmd_option options[] = {
    {"for", 0, CMD_DURATION, FIELD(for_ms), "D", NULL, LEAST_SECONDS * 1000},
    {"database", 0, CMD_TEXT, FIELD(database), "NAME", NULL, 0},
    {"clean", 0, CMD_FLAG, FIELD(clean), NULL, NULL, 0},
};

const struct cmd cmd_bench = {
    .name = "bench",
    CMD_OPTIONS(options, bench_values),
    .exclusive = "clean for, clean database",
    .level = CMD_NOTHING,
    .formats = OUT_NO_ID,
    .run = run,
};
