/*
 * column.h - a column of what is read, shown, exported and imported: one row for each.
 *
 * A table of them is all that the statements, the readers, the formats and the help texts know of a
 * thing: a task (TASK_COLUMNS), an attempt, a dqd.
 */
#ifndef DQ_BASE_COLUMN_H
#define DQ_BASE_COLUMN_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the field is, and what stands for SQL NULL. */
enum column_type {
    /* integers, and what is aligned to the right as they are */
    COLUMN_ID,     /* uint64_t, from 1; 0: none */
    COLUMN_U64,    /* uint64_t */
    COLUMN_U32,    /* uint32_t */
    COLUMN_SOME,   /* uint32_t, from 1; 0: none */
    COLUMN_INT,    /* int */
    COLUMN_EXIT,   /* int, from 0; -1: none */
    COLUMN_SIGNAL, /* int, from 1; 0: none */
    COLUMN_SIZE,   /* size_t; SIZE_MAX: none */
    COLUMN_REAL,   /* computed */
    COLUMN_MS,     /* int64_t: a duration */
    COLUMN_AHEAD,  /* the same; INT64_MIN: none */
    /* others */
    COLUMN_BOOL,
    COLUMN_TIME,  /* int64_t: an instant; TASK_TIME_NONE: none */
    COLUMN_UNTIL, /* the same; INT64_MAX: until resumed, stored as WHEN_AT_MAX or later */
    COLUMN_DUE,   /* int64_t, of a column that is NOT NULL: long past if it cannot be read */
    /* heap memory */
    COLUMN_TEXT,  /* char *; NULL: none */
    COLUMN_NAME,  /* char *, of a column that is NOT NULL: "" if it is nevertheless */
    COLUMN_TAG,   /* char *, as sql_dup_tag returns it */
    COLUMN_TAGS,  /* the same; NULL: none, or several */
    COLUMN_KEY,   /* char *, as sql_dup_key returns it */
    COLUMN_BYTES, /* void *, and behind it size_t; NULL: none */
    /* no heap memory */
    COLUMN_CHARS,   /* char[], computed; "": none */
    COLUMN_TOKEN,   /* unsigned char[TASK_TOKEN_SIZE], and behind it bool: whether there is one */
    COLUMN_STATUS,  /* int: enum task_status */
    COLUMN_LEVEL,   /* int: enum task_level */
    COLUMN_OUTCOME, /* int: enum task_outcome */
};

/* Flags. Whether the lines of dq export have it, and those of dq import must have it. */
enum { COLUMN_MOVES = 1, COLUMN_NEEDED = 3 };

#define COLUMN_MOST 32         /* columns of a table: sets of them are bits of an unsigned */
#define COLUMN_NARROW UINT_MAX /* as max: cut only if the terminal is narrow */

struct cell; /* cli/show/cell.h */

struct column {
    const char *sql; /* in its table, or an expression; NULL: it is not read by itself */
    /* in --columns, JSON, TSV and the lines of dq export. The heading of a table has it in upper
     * case, with blanks for _ and / for _per_. COLUMNS of dq(1) lists all names */
    const char *name;
    enum column_type type; /* numbers and durations are aligned to the right */
    size_t offset;         /* of the field in its struct */
    /* a table cuts it at this width, or at less if the terminal is narrow; 0: never */
    unsigned max;
    unsigned flags;
    /* what is shown; NULL: the field. arg: as the verb has it */
    void (*get)(const void *row, const void *arg, struct cell *ret);
    const char *help; /* one line */
};
/* A row; `of`: the struct. Lists of rows, such as TASK_COLUMNS, are expanded with it. */
#define COLUMN(of, sql, name, type, field, max, flags, get, help)                                  \
    {                                                                                              \
        sql, name, COLUMN_##type, offsetof(struct of, field), max, flags, get, help                \
    }

/* The same for those who do not show it: without the getter, which they do not have. */
#define COLUMN_UNSHOWN(of, sql, name, type, field, max, flags, get, help)                          \
    COLUMN(of, sql, name, type, field, max, flags, NULL, help)

/* The number that a field holds; a status is one, a time is not. False: none. */
bool column_number(const struct column *c, const void *row, uint64_t *ret);
/* Sets a field that is as long as the type says: of an integer, a duration or a status. */
void column_set_number(const struct column *c, void *row, uint64_t number);

#endif
