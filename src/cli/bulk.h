/*
 * bulk.h - `dq add --from`: tasks from a file, a line each, NDJSON or TSV.
 */
#ifndef DQ_CLI_BULK_H
#define DQ_CLI_BULK_H

#include "base/json.h"
#include "cli/cmd.h"
#include "store/task_add.h"

enum bulk_format { BULK_NDJSON, BULK_TSV };
extern const char *const bulk_format_names[]; /* index = format, NULL-terminated */

/* One line as a task. The texts are offsets into the arena that the parser fills, as that may move
 * while it grows. */
struct bulk_item {
    struct task_new task; /* its tag, key and body are set by the reader of the whole chunk */
    size_t tag, key, body;
    bool has_key;
    uint64_t line;
};

#define BULK_COLUMNS_MAX 8
struct bulk_parser {
    struct cmd_context *c; /* for the clock, asked when a time is relative */
    enum bulk_format format;
    struct json_reader *json;
    int columns[BULK_COLUMNS_MAX]; /* TSV: what each field is */
    size_t column_count;
};
void bulk_parser_init(struct bulk_parser *p, struct cmd_context *c, enum bulk_format format);
void bulk_parser_done(struct bulk_parser *p);
/* TSV: whether line 1 is a heading; if so its columns are taken over. 1 yes, 0 no, ERR_DATA for an
 * unknown column. */
int bulk_parse_heading(struct bulk_parser *p, const char *line, size_t len, struct err *err)
    __attribute__((warn_unused_result));
/* One line, not blank. Appends its texts to the arena, also when it fails. ERR_DATA, without file
 * and line number. */
int bulk_parse_line(struct bulk_parser *p, const char *line, size_t len, struct buf *arena,
                    struct bulk_item *ret, struct err *err) __attribute__((warn_unused_result));

struct bulk_options {
    const char *from; /* path or "-" */
    int format;       /* enum bulk_format; -1: guess */
    enum key_conflict on_conflict;
    uint64_t skip; /* lines not to be added */
    bool dry_run;
};
/* Adds them all, chunk by chunk, and prints how many. The error of a bad line says what was added
 * before it and how to go on. */
int bulk_run(struct cmd_context *c, const struct bulk_options *o, struct err *err)
    __attribute__((warn_unused_result));

#endif
