/*
 * cell.h - one value on its way to stdout: for people, as JSON, as TSV.
 */
#ifndef DQ_CLI_SHOW_CELL_H
#define DQ_CLI_SHOW_CELL_H

#include "base/buf.h"
#include "base/column.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cell_kind {
    CELL_NULL,     /* table "-", JSON null, TSV empty */
    CELL_TEXT,     /* text, UTF-8 */
    CELL_BYTES,    /* text, any bytes; JSON: NAME or NAME_base64 */
    CELL_NUMBER,   /* number; `capped`: at least, "10000+"; `sampled`: about, "~10000" */
    CELL_BOOL,     /* number 0 or 1: "no", "yes" */
    CELL_REAL,     /* real */
    CELL_JSON,     /* text: a JSON value; shown to others as text */
    CELL_TIME,     /* at: ms, UTC; JSON and TSV: RFC 3339 */
    CELL_DURATION, /* at: ms; JSON and TSV: the number */
    /* at: an instant; the time from now until then, or since then, as a duration; CELL_NULL if that
       would be negative */
    CELL_UNTIL,
    CELL_SINCE,
};
enum cell_colour { CELL_PLAIN, CELL_GOOD, CELL_WARN, CELL_BAD, CELL_BUSY, CELL_DIM };

struct cell { /* all zero: CELL_NULL */
    enum cell_kind kind;
    enum cell_colour colour;
    const char *text; /* must live until the getter is called again */
    size_t len;
    uint64_t number;
    bool capped, sampled;
    bool brief;         /* CELL_TIME in a table: without what it shares with today */
    const char *people; /* what a table shows instead of the value; NULL: the value */
    double real;
    int64_t at;
};
/* Fill a cell. A NULL text, and the instant TASK_TIME_NONE, give CELL_NULL. */
void cell_set_text(struct cell *cell, const char *text);
void cell_set_bytes(struct cell *cell, const void *p, size_t len);
void cell_set_number(struct cell *cell, uint64_t number);
void cell_set_time(struct cell *cell, int64_t at);
void cell_set_duration(struct cell *cell, int64_t ms);
void cell_set_until(struct cell *cell, int64_t at);
void cell_set_since(struct cell *cell, int64_t at); /* how late something is: CELL_WARN */
void cell_set_bool(struct cell *cell, bool truth);
/* An empty buffer for the text of a cell that a getter makes. It lives until the next call. */
struct buf *cell_buffer(void);
/* The field of a row, as the type of its column says. */
void cell_set_field(struct cell *cell, const struct column *c, const void *row);

struct cell_style {
    bool utc;       /* people are shown UTC instead of the local zone */
    int64_t now_at; /* for CELL_UNTIL and CELL_SINCE */
};
/* For people: nothing in it moves a terminal's cursor. Cut at max columns unless max is 0. `exact`:
 * instants with milliseconds and zone. */
void cell_put_plain(struct buf *b, const struct cell_style *style, const struct cell *cell,
                    unsigned max, bool exact);
/* "name":value, behind a comma if it is not the first member of its object. */
void cell_put_json(struct buf *b, const struct cell_style *style, const char *name,
                   const struct cell *cell);
/* The same of a text; NULL: null. */
void cell_put_json_text(struct buf *b, const struct cell_style *style, const char *name,
                        const char *text);
void cell_put_tsv(struct buf *b, const struct cell_style *style, const struct cell *cell);

/* A field of TSV: \t \n \r \\, the bytes of other unsafe characters (text_char_unsafe) and those
 * that are not UTF-8 as \xHH. `dq add --from` reads it back. */
void cell_put_escaped(struct buf *b, const char *p, size_t len);
/* "1,234,567" */
void cell_put_count(struct buf *b, uint64_t count);
void cell_put_time(struct buf *b, const struct cell_style *style, int64_t at, bool exact);
/* The colour in which a table shows it: CELL_PLAIN if there is nothing to show. */
enum cell_colour cell_colour(const struct cell_style *style, const struct cell *cell);
/* The escape sequence that begins a colour; "" for CELL_PLAIN. */
const char *cell_colour_code(enum cell_colour colour);

#endif
