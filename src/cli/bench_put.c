/*
 * bench_put.c - what `dq bench` prints: for people a table of each kind of row, for programs one list.
 */
#include "cli/bench.h"

#include <stdio.h>
#include <string.h>

#define ROW ((const struct bench_row *)row)
#define GETTER(name) static void get_##name(const void *row, const void *arg __attribute__((unused)), struct cell *ret)

/* For people: three digits that count, thousands apart, millions in words. */
static void round_text(char *ret, size_t size, double v)
{
    if (v >= 1e9)
        snprintf(ret, size, "%.*f billion", v < 1e10 ? 1 : 0, v / 1e9);
    else if (v >= 1e6)
        snprintf(ret, size, "%.*f million", v < 1e7 ? 1 : 0, v / 1e6);
    else if (v >= 1000)
        snprintf(ret, size, "%d,%03d", (int)v / 1000, (int)v % 1000);
    else if (v == (double)(int)v)
        snprintf(ret, size, "%d", (int)v);
    else
        snprintf(ret, size, "%.*f", v < 10 ? 2 : v < 100 ? 1 : 0, v);
}

static void set_value(const void *arg, struct cell *ret, double v)
{
    static char text[32];
    const struct cmd_context *c = arg;

    ret->kind = CELL_REAL;
    ret->real = v;
    if (c->style.format == OUT_TABLE) {
        round_text(text, sizeof text, v);
        cell_set_text(ret, text);
    }
}

GETTER(kind)
{
    cell_set_text(ret, ROW->kind);
}

GETTER(name)
{
    cell_set_text(ret, ROW->name);
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

GETTER(unit)
{
    cell_set_text(ret, ROW->unit);
}

GETTER(setting)
{
    cell_set_text(ret, ROW->setting[0] ? ROW->setting : NULL);
}

GETTER(now)
{
    cell_set_text(ret, ROW->now[0] ? ROW->now : NULL);
}

GETTER(about)
{
    cell_set_text(ret, ROW->about);
    ret->colour = ROW->warn ? CELL_WARN : CELL_PLAIN;
}

static const struct out_column columns[] = {
    {"kind", NULL, false, 0, "", get_kind},  {"name", NULL, false, 0, "", get_name},
    {"value", NULL, true, 0, "", get_value}, {"p99", NULL, true, 0, "", get_p99},
    {"unit", NULL, false, 0, "", get_unit},  {"setting", NULL, false, OUT_NARROW, "", get_setting},
    {"now", NULL, false, 0, "", get_now},    {"about", NULL, false, OUT_NARROW, "", get_about},
};

/* kind NULL: all. */
static int put_rows(const struct bench *b, const struct bench_rows *rows, const char *kind, const char *names, struct err *err)
{
    struct out *out;
    int rc = out_new(&out, &b->c->style, columns, sizeof columns / sizeof columns[0], names, b->c, err);

    for (size_t i = 0; rc == 0 && i < rows->count; i++)
        if (!kind || strcmp(rows->items[i].kind, kind) == 0)
            out_row(out, &rows->items[i]);
    if (rc == 0)
        out_free(out);
    return rc;
}

static int put_tables(const struct bench *b, const struct bench_rows *rows, struct err *err)
{
    struct buf heading = BUF_INIT;
    buf_printf(&heading, "measured on %s and this host\n", db_server(b->db));
    out_write(&heading);
    int rc = put_rows(b, rows, "measure", "name,value,p99,unit,about", err);
    buf_reset(&heading);
    buf_str(&heading, "\nwhat they can carry\n");
    out_write(&heading);
    if (rc == 0)
        rc = put_rows(b, rows, "carry", "name,value,unit,about", err);
    buf_reset(&heading);
    buf_str(&heading, "\nwhat is the brake\n");
    out_write(&heading);
    if (rc == 0)
        rc = put_rows(b, rows, "brake", "name,setting,now,about", err);
    buf_done(&heading);
    return rc;
}

int bench_put(const struct bench *b, const struct bench_rows *rows, struct err *err)
{
    return b->c->style.format == OUT_TABLE ? put_tables(b, rows, err) : put_rows(b, rows, NULL, NULL, err);
}
