/*
 * cmd_init.c - dq init: the tables, created or brought up to date. It never destroys data.
 */
#include "cli/line/verbs.h"
#include "cli/many/act.h"
#include "store/schema/routines.h"
#include "store/schema/schema_migrate.h"

#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#define STATEMENT_TIMEOUT_MS (3600 * 1000) /* an index of a very large table takes its time */

struct init_values {
    bool print_sql, plan, no_routines;
};

/* For a DBA: each migration from the one that is named on, and the statements that record it. */
static int print_sql(const struct cmd_context *c, bool routines, struct err *err)
{
    struct buf b = BUF_INIT;
    char *end = NULL;
    long first = c->operand_count ? strtol(c->operands[0], &end, 10) : 1;
    if (end && (*end != '\0' || first < 1 || first > schema_latest))
        return err_set(err, ERR_USAGE, "there is no migration \"%s\"; they are numbered 1 to %d",
                       c->operands[0], schema_latest);
    for (int i = (int)first - 1; i < schema_latest; i++)
        schema_put_script(&b, &schema_migrations[i]);
    if (routines)
        routines_put_script(&b);
    out_take(&b);
    return 0;
}

#define STEP ((const struct schema_migrate_step *)row)

static const struct column columns[] = {
    OUT_FIELD(schema_migrate_step, "migration", TEXT, migration, 0),
    OUT_FIELD(schema_migrate_step, "table", TEXT, table, 0),
    OUT_FIELD(schema_migrate_step, "rows", U64, rows, 0),
    OUT_FIELD(schema_migrate_step, "touched", U64, touched, 0),
    OUT_FIELD(schema_migrate_step, "writers_wait", BOOL, writers_wait, 0),
    OUT_FIELD(schema_migrate_step, "statement", TEXT, statement, 0),
};

/* Where a plan is printed, and how many procedures it keeps, cannot make, and makes. */
struct plan {
    const struct cmd_context *c;
    struct out *out;
    unsigned kept, denied, made;
};

/* In a table for people, a new table is its name: --print-sql and JSON have its columns. */
static void print_step(const struct schema_migrate_step *s, void *arg)
{
    const struct plan *p = arg;
    struct schema_migrate_step shown = *s;
    BUF_LOCAL struct buf statement = BUF_INIT;
    size_t head = strcspn(s->statement, "(");

    if (p->c->style.format == OUT_TABLE && s->creates) {
        buf_printf(&statement, "%.*s(...)", (int)head, s->statement);
        shown.statement = statement.data;
    }
    out_row(p->out, &shown);
}

static void print_routine(const char *name, enum routines_action action, void *arg)
{
    struct plan *p = arg;
    BUF_LOCAL struct buf sql = BUF_INIT;
    bool replace = action == ROUTINES_REPLACE, mariadb = db_is_mariadb(p->c->db);

    p->kept += action == ROUTINES_KEEP;
    p->denied += action == ROUTINES_DENIED;
    if (action != ROUTINES_CREATE && !replace)
        return;
    p->made++;
    if (replace && !mariadb)
        buf_printf(&sql, "DROP PROCEDURE %s; ", name);
    buf_printf(&sql, "CREATE %sPROCEDURE %s (...)", replace && mariadb ? "OR REPLACE " : "", name);
    print_step(&(struct schema_migrate_step){.migration = "routines", .statement = sql.data}, p);
}

/* The procedures that stay as they are, and the programs that work with the tables from then on. */
static void say_rest(const struct plan *p, int from)
{
    const struct cmd_context *c = p->c;

    if (p->kept)
        cmd_note(c, "procedures for producers in SQL: %u left alone", p->kept);
    if (p->denied)
        cmd_note(c,
                 "procedures for producers in SQL: %u not created, as this account has no right to",
                 p->denied);
    if (from < schema_latest)
        cmd_note(c, "schema version %d to %d, which works with programs made for %d and later",
                 from, schema_latest, schema_migrations[schema_latest - 1].compat);
    else if (!p->made)
        cmd_note(c, "schema version %d: nothing to do", from);
}

static int print_plan(struct cmd_context *c, bool routines, struct err *err)
{
    struct plan p = {.c = c, .out = out_new(&c->style, OUT_OF(columns), NULL)};
    int from = 0;

    int rc = schema_migrate_plan(c->db, print_step, &p, &from, err);
    if (rc == 0 && routines && from <= schema_latest)
        rc = routines_plan(c->db, print_routine, &p, err);
    rc = out_end(p.out, rc);
    if (rc == 0)
        say_rest(&p, from);
    return rc;
}

static void say_applied(const struct schema_migration *m, void *arg)
{
    cmd_note(arg, "applied %s", m->name);
}

/* Everything but producers in SQL works without them: an account that may not create them is no
 * error. */
static int make_routines(struct cmd_context *c, unsigned *ret_made, struct err *err)
{
    struct err why = {0};
    BUF_LOCAL struct buf lost = BUF_INIT;
    int rc = routines_install(c->db, ret_made, &lost, &why);
    if (lost.len)
        cmd_note(
            c,
            "MySQL has dropped grants on procedures that were replaced, and they could not be repeated:");
    for (size_t at = 0, len; at < lost.len; at += len + 1) {
        len = strcspn(lost.data + at, "\n");
        cmd_note(c, "    %.*s;", (int)len, lost.data + at);
    }
    if (*ret_made)
        cmd_note(c, "procedures for producers in SQL: %u created or replaced", *ret_made);
    if (rc == ERR_DENIED)
        cmd_note(c, "the procedures for producers in SQL are missing or not up to date: %s",
                 why.text);
    else if (rc < 0)
        return err_set(err, rc, "%s", why.text);
    return 0;
}

/* Best effort: tasks run without it. */
static void record(struct cmd_context *c, int from)
{
    struct err why = {0};
    char text[64];
    LOCAL_BY(act_done) struct act act = act_of(c, NULL, NULL);
    snprintf(text, sizeof text, "schema version %d to %d", from, schema_latest);
    act.event.arguments = text;
    if (event_store_add(c->db, &act.event, NULL, 0, &why) < 0)
        cmd_note(c, "dq events does not show this: %s", why.text);
}

static int run(struct cmd_context *c, struct err *err)
{
    const struct init_values *v = c->values;
    unsigned made = 0; /* procedures */
    int from = 0;
    if (v->print_sql)
        return print_sql(c, !v->no_routines, err);
    if (c->operand_count > 0)
        return err_set(err, ERR_USAGE, "unexpected argument \"%s\": dq init", c->operands[0]);
    int rc = cmd_open(c, CMD_CONF, err);
    if (rc < 0)
        return rc;
    c->conf->mysql.read_timeout_ms = MAX(c->conf->mysql.read_timeout_ms, STATEMENT_TIMEOUT_MS);
    rc = cmd_open(c, CMD_DB, err);
    if (rc == 0 && v->plan)
        return print_plan(c, !v->no_routines, err);
    if (rc == 0)
        rc = schema_migrate(c->db, say_applied, c, &from, err);
    if (rc == 0 && from < schema_latest)
        record(c, from);
    if (rc == 0 && !v->no_routines && from <= schema_latest) /* else they are a newer dq's */
        rc = make_routines(c, &made, err);
    if (rc < 0)
        return rc;
    if (c->style.format != OUT_TABLE)
        out_printf("{\"from\":%d,\"to\":%d}\n", from, MAX(from, schema_latest));
    else if (from >= schema_latest)
        out_printf("%s, database %s: schema version %d%s%s\n", db_server(c->db),
                   c->conf->mysql.database, from,
                   from > schema_latest ? " of a newer dq, which works with this one" : "",
                   made ? "" : ", nothing to do");
    else
        out_printf("%s, database %s: schema upgraded from version %d to %d\n", db_server(c->db),
                   c->conf->mysql.database, from, schema_latest);
    return 0;
}

static const struct cmd_option options[] = {
    {"print-sql", 0, CMD_FLAG, offsetof(struct init_values, print_sql), NULL, NULL, 0},
    {"plan", 0, CMD_FLAG, offsetof(struct init_values, plan), NULL, NULL, 0},
    {"no-routines", 0, CMD_FLAG, offsetof(struct init_values, no_routines), NULL, NULL, 0},
};

const struct cmd cmd_init = {
    .name = "init",
    CMD_OPTIONS(options, init_values),
    .exclusive = "plan print-sql",
    .max_operands = 1,
    .level = CMD_NOTHING,
    .formats = OUT_BIT(OUT_TABLE) | OUT_BIT(OUT_JSON) | OUT_BIT(OUT_NDJSON),
    .run = run,
};
