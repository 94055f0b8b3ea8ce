/*
 * cmd_bench.c - dq bench: what this server and this host can carry, and what is the brake.
 *
 * Invariant: whatever happens, but for a death by KILL, what was made on the server is dropped before the verb returns; and what
 * was there before is never written to.
 */
#include "cli/bench.h"
#include "cli/progress.h"
#include "cli/verbs.h"
#include "store/schema.h"

#include "base/when.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_MS (60 * WHEN_SECOND)
#define LEAST_MS (2 * WHEN_SECOND)
#define MOST_MS (10 * WHEN_MINUTE)

struct bench_values {
    int64_t for_ms;
    const char *database;
    bool clean;
};

/* Percent of the time each. What a later one counts on has been measured by an earlier one. */
static const struct {
    const char *what;
    int percent;
    int (*run)(struct bench *b, int64_t ms, struct err *err);
} steps[] = {
    {"round trip", 3, bench_round_trip},
    {"commits of one row", 8, bench_commit},
    {"connections", 4, bench_connect},
    {"dq add", 6, bench_add_command},
    {"single adds", 7, bench_add},
    {"bulk adds", 8, bench_add_bulk},
    {"looks at what is due", 3, bench_peek},
    {"claims and settlings", 12, bench_claim},
    {"starts of a process", 6, bench_spawn},
    {"starts of processes, several at a time", 8, bench_spawn_parallel},
    {"dqd, a process a task", 13, bench_run},
    {"dqd, batches", 10, bench_run_batch},
    {"lateness", 12, bench_lateness},
};
#define STEP_COUNT (sizeof(steps) / sizeof(steps[0]))

/* ---- the scratch database */

struct scratch {
    struct conf_mysql conf; /* without a database */
    struct db *db;          /* holds the lock, and drops in the end */
    char name[SCRATCH_NAME_SIZE];
    const char *given; /* --database */
    bool made;         /* there may be something to drop */
};

static char no_database[] = "";

static int scratch_connect(struct cmd_context *c, struct scratch *s, struct err *err)
{
    s->conf = c->conf->mysql;
    s->conf.database = no_database;
    s->db = db_new(&s->conf);
    return db_connect(s->db, err);
}

static int tell_leftovers(struct cmd_context *c, struct scratch *s, struct err *err)
{
    char **names = NULL;
    size_t count = 0;
    int rc = scratch_store_list(s->db, &names, &count, err);

    for (size_t i = 0; i < count; i++)
        cmd_note(c, "the database %s was left behind by a dq bench that was killed: dq bench --clean drops it", names[i]);
    scratch_names_free(names, count);
    return rc;
}

static int explain_denied(struct scratch *s, struct err *err)
{
    char *account = NULL;

    if (scratch_store_account(s->db, &account, err) == 0 && account)
        err_set(err, ERR_DENIED,
                "this account may not make a database of its own to measure in. An administrator can allow it: GRANT ALL ON "
                "`%s`.* TO %s; or name an existing empty database with --database",
                SCRATCH_PATTERN, account);
    free(account);
    return err->code;
}

static int scratch_make(struct bench *b, struct scratch *s, struct err *err)
{
    int from, rc = scratch_store_hold(s->db, s->given ? s->given : s->name, err);

    if (rc < 0)
        return rc;
    b->db = db_new(&b->conf);
    if (s->given) {
        rc = db_connect(b->db, err);
        if (rc == ERR_CONFIG)
            return err_set(err, rc, "--database %s: there is no such database. Make it (CREATE DATABASE), or leave the option out",
                           s->given);
        if (rc == 0)
            rc = scratch_store_check_empty(b->db, err);
        if (rc < 0)
            return err_prefix(err, "--database %s", s->given);
    }
    s->made = true;
    rc = schema_migrate(b->db, NULL, NULL, &from, err);
    if (rc == 0)
        rc = scratch_store_commit(b->db, 0, err); /* marks it as ours */
    if (rc == ERR_DENIED && !s->given)
        rc = explain_denied(s, err);
    return rc;
}

/* On a connection that may have been idle for too long: a second time on a new one. */
static int scratch_drop(struct bench *b, struct scratch *s, struct err *err)
{
    int rc = ERR_LOST;

    for (int try = 0; try < 2 && rc == ERR_LOST; try++)
        rc = s->given ? scratch_store_drop_tables(b->db, err) : scratch_store_drop(s->db, s->name, err);
    return rc;
}

/* After a failure that one comes first. */
static int scratch_done(struct bench *b, struct scratch *s, int rc, struct err *err)
{
    struct err drop_err = {0};
    char text[sizeof err->text];
    bool dropped = !s->made || scratch_drop(b, s, &drop_err) == 0;

    if (!dropped && rc == 0) {
        *err = drop_err;
        rc = err_prefix(err, "all is measured, but %s could not be dropped", s->given ? s->given : s->name);
    } else if (!dropped && rc != ERR_DENIED) {
        memcpy(text, err->text, sizeof text);
        if (s->given)
            err_set(err, rc, "%s; the tables of dq in %s could not be dropped", text, s->given);
        else
            err_set(err, rc, "%s; %s could not be dropped: dq bench --clean drops it later", text, s->name);
    }
    db_free(b->db);
    db_free(s->db);
    return rc;
}

/* ---- the verb */

static int measure(struct bench *b, int64_t total_ms, struct err *err)
{
    struct progress progress;
    int done = 0;
    int rc = scratch_store_server(b->db, b->c->conf->mysql.database, &b->server, err);

    progress_init(&progress, b->c->quiet, "");
    for (size_t i = 0; rc == 0 && i < STEP_COUNT && !bench_stopped(); i++) {
        progress_phase(&progress, steps[i].what, done / 100.0);
        rc = steps[i].run(b, total_ms * steps[i].percent / 100, err);
        if (rc < 0)
            err_prefix(err, "%s", steps[i].what);
        done += steps[i].percent;
    }
    progress_clear(&progress);
    if (bench_stopped())
        rc = err_set(err, ERR_TRANSIENT, "interrupted");
    return rc;
}

static int put(const struct bench *b, struct err *err)
{
    struct bench_rows rows = bench_judge(b);
    int rc = bench_put(b, &rows, err);

    free(rows.items);
    return rc;
}

static int clean(struct cmd_context *c, struct err *err)
{
    struct scratch s = {.db = NULL};
    struct buf out = BUF_INIT;
    char **names = NULL;
    size_t count = 0, dropped = 0;
    int rc = scratch_connect(c, &s, err);

    if (rc == 0)
        rc = scratch_store_list(s.db, &names, &count, err);
    for (; rc == 0 && dropped < count; dropped++) {
        rc = scratch_store_drop(s.db, names[dropped], err);
        if (rc == 0)
            cmd_note(c, "dropped %s", names[dropped]);
    }
    if (rc == 0 && c->style.format == OUT_TABLE)
        buf_printf(&out, "%zu dropped\n", dropped);
    else if (rc == 0 && c->style.format == OUT_TSV)
        buf_printf(&out, "dropped\n%zu\n", dropped);
    else if (rc == 0)
        buf_printf(&out, "{\"dropped\":%zu}\n", dropped);
    out_write(&out);
    buf_done(&out);
    scratch_names_free(names, count);
    db_free(s.db);
    return rc;
}

static int check(const struct bench_values *v, struct err *err)
{
    if (v->clean && (v->for_ms >= 0 || v->database))
        return err_set(err, ERR_USAGE, "--clean measures nothing: it goes without --for and --database");
    if (v->database && *v->database == '\0')
        return err_set(err, ERR_USAGE, "--database needs the name of an empty database");
    if (v->for_ms >= 0 && (v->for_ms < LEAST_MS || v->for_ms > MOST_MS))
        return err_set(err, ERR_USAGE, "--for: 2s to 10m");
    return 0;
}

static int run(struct cmd_context *c, const void *values, struct err *err)
{
    const struct bench_values *v = values;
    struct scratch s = {.given = v->database};
    struct bench b = {.c = c};
    int64_t total_ms = v->for_ms > 0 ? v->for_ms : DEFAULT_MS;
    char text[WHEN_TEXT_SIZE];
    int rc = check(v, err);

    if (rc == 0)
        rc = cmd_open(c, CMD_CONF, err);
    if (rc < 0)
        return rc;
    if (v->clean)
        return clean(c, err);
    b.conf = c->conf->mysql;
    scratch_name_new(s.name);
    b.conf.database = s.given ? (char *)(uintptr_t)s.given : s.name;
    bench_catch_signals();
    rc = scratch_connect(c, &s, err);
    if (rc == 0)
        rc = tell_leftovers(c, &s, err);
    if (rc == 0)
        rc = scratch_make(&b, &s, err);
    if (rc < 0)
        goto out;
    cmd_note(c, "measuring for about %s in the database %s, %s in the end", when_format_rough(text, total_ms), b.conf.database,
             s.given ? "which is emptied" : "which is dropped");
    rc = bench_process_init(&b, err);
    if (rc == 0)
        rc = measure(&b, total_ms, err);
    if (rc == 0)
        rc = put(&b, err);
    bench_process_done(&b);
out:
    return scratch_done(&b, &s, rc, err);
}

#define FIELD(name) offsetof(struct bench_values, name)
static const struct cmd_option options[] = {
    {"for", 0, CMD_DURATION, FIELD(for_ms), "D", "measure for so long, 2s to 10m; default 1m", NULL, 0},
    {"database", 0, CMD_TEXT, FIELD(database), "NAME", "use this database, which must be empty, instead of making one", NULL, 0},
    {"clean", 0, CMD_FLAG, FIELD(clean), NULL, "only drop what a killed dq bench has left, of what this account sees", NULL, 0},
};

const struct cmd cmd_bench = {
    .name = "bench",
    .group = "set up",
    .summary = "measure what this server and this host can carry, and what is the brake",
    .usage = "[--for D] [--database NAME]\n--clean",
    .details =
        "Measures in a database of its own, dq_bench_ and a random number, which it makes on the configured server and drops "
        "again, also when it is interrupted; no other one is touched. Meanwhile it keeps one connection busy, and this host's "
        "cores for a third of the time: run it in a quiet hour. A binary log and replicas get what it writes, some 100 MB at "
        "most.\n"
        "It adds, claims and settles tasks as dq and dqd do, starts processes, and runs the dqd that lies beside dq or in PATH. "
        "Handlers do nothing: what is carried is what dq leaves to yours.",
    CMD_OPTIONS(options),
    .values_size = sizeof(struct bench_values),
    .level = CMD_NOTHING,
    .formats = OUT_NO_ID,
    .run = run,
};
