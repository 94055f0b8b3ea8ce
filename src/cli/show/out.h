/*
 * out.h - what dq prints on stdout: rows of a table of columns, in one of six formats.
 *
 * A verb describes its rows once, as a table of struct column; which column is shown and how it
 * looks follows from the format. Memory is bounded: a table looks at OUT_AHEAD rows to find its
 * column widths, everything else is written row by row.
 */
#ifndef DQ_CLI_SHOW_OUT_H
#define DQ_CLI_SHOW_OUT_H

#include "base/buf.h"
#include "base/column.h"
#include "base/err.h"
#include "base/mem.h"
#include "cli/show/cell.h"

#include <stdbool.h>
#include <stddef.h>

#define OUT_AHEAD 1000

enum out_format {
    OUT_TABLE,
    OUT_JSON,
    OUT_NDJSON,
    OUT_TSV,
    OUT_ID,
    OUT_CSV,
    OUT_PROMETHEUS,
    OUT_FORMAT_COUNT
};
#define OUT_BIT(format) (1u << (format))
/* but CSV, which is for `dq add --from` and spreadsheets, and Prometheus' own */
#define OUT_ANY (OUT_BIT(OUT_CSV) - 1)
#define OUT_NO_ID (OUT_ANY & ~OUT_BIT(OUT_ID))
extern const char *const out_format_names[]; /* index = format, NULL-terminated */

/* Rows of a table of columns: a field of a struct, and what a getter computes. */
#define OUT_FIELD(of, name, type, field, max) COLUMN(of, NULL, name, type, field, max, 0, NULL, "")
#define OUT_GET(name, type, max, get)                                                              \
    {                                                                                              \
        NULL, name, COLUMN_##type, 0, max, 0, get, ""                                              \
    }
/* Begins the definition of get_NAME, for a column that depends on `row` alone. */
#define OUT_GETTER(name)                                                                           \
    static void get_##name(const void *row, const void *arg __attribute__((unused)),               \
                           struct cell *ret)

struct out_style {
    enum out_format format;
    bool colour; /* as --color, the setting and the terminal have it */
    bool no_header;
    bool terminal;  /* stdout is one */
    unsigned width; /* of that; 0: there is none, or it is not known */
    struct cell_style cell;
};

/* Columns, and which of them are shown ("id,tag,due"; NULL: all). The strings are borrowed. */
struct out_table {
    const struct column *columns;
    size_t count;
    const char *shown; /* in a table */
    /* A table that is too wide for the terminal leaves these columns out, the first one first,
     * before texts are cut to less than a third of the terminal, or half of it in the first column;
     * names that are not shown are ignored. NULL: none; none either if there are names */
    const char *drop;
    const char *names; /* in every format; NULL: as `shown` has it */
};
#define OUT_OF(table, ...)                                                                         \
    (&(const struct out_table){.columns = (table), .count = MEM_COUNT(table), __VA_ARGS__})

/* Prints what each column is. */
void out_columns_help(const struct out_table *t);

/* ERR_USAGE if one of the names, which a user has given, is no column of the table. */
int out_check(const struct out_table *t, struct err *err) __attribute__((warn_unused_result));
/* Begins an output. arg goes to the getters. OUT_ID prints the first column alone. */
struct out;
struct out *out_new(const struct out_style *style, const struct out_table *t, const void *arg)
    __attribute__((warn_unused_result));
/* A whole output: rows[0..count-1], each of that size. */
void out_all(const struct out_style *style, const struct out_table *t, const void *arg,
             const void *rows, size_t size, size_t count);
void out_row(struct out *o, const void *row);
/* Writes pending rows and the end of the output, and frees it; NULL is fine. Returns rc. If rc is
 * an error, rows may be missing: then JSON is left without its end, so that no program takes it for
 * all there is, and without a row nothing at all is written, not even a heading. */
int out_end(struct out *o, int rc);

/* One thing, with all columns: `name  value` lines in a table, else one JSON object or one TSV row.
 */
void out_record(const struct out_style *style, const struct column *table, size_t count,
                const void *row);
/* `"name":value,...` of all columns, without braces: for objects that hold more than a row. */
void out_put_members(struct buf *b, const struct cell_style *style, const struct column *table,
                     size_t count, const void *row, const void *arg);
/* `,"name":[{...},{...}]`: a member of an object, with rows[0..count-1], each of that size. */
void out_put_array(struct buf *b, const struct cell_style *style, const char *name,
                   const struct out_table *t, const void *rows, size_t size, size_t count);

/* To stdout, as it is. */
void out_write(const struct buf *b);
void out_take(struct buf *b); /* and frees it */
void out_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* From now on, what would be written to stdout is appended to a buffer; NULL: no longer. */
void out_capture(struct buf *to);
void out_sync(void);   /* hands stdout what was written; a failure is out_flush's to report */
bool out_failed(void); /* stdout took no more: stop producing */
/* Flushes stdout. A reader that went away ends the process by SIGPIPE, as for any other tool;
 * otherwise ERR_SYSTEM. */
int out_flush(struct err *err) __attribute__((warn_unused_result));

#endif
