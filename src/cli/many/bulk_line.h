/*
 * bulk_line.h - one line of NDJSON or TSV, or one record of CSV, as a task.
 *
 * A line may be what `dq list` printed: the members and columns that describe a task, not what
 * became of it, are used, the other columns of a task (task_columns.h) are ignored.
 */
#ifndef DQ_CLI_MANY_BULK_LINE_H
#define DQ_CLI_MANY_BULK_LINE_H

#include "base/json.h"
#include "cli/line/cmd.h"
#include "store/ask/task_add.h"

enum bulk_line_format { BULK_LINE_NDJSON, BULK_LINE_TSV, BULK_LINE_CSV };
extern const char *const bulk_line_format_names[]; /* index = format, NULL-terminated */

/* One line as a task. The texts are offsets into the arena that the parser fills, as that may move
 * while it grows. */
struct bulk_line {
    struct task_new task; /* its tag, key and body are set by the reader of the whole chunk */
    size_t tag, key, body;
    bool has_key, timed; /* timed: it has a time of its own */
    uint64_t line;
};

#define BULK_LINE_COLUMNS_MAX 64
struct bulk_line_parser {
    struct cmd_context *c; /* for the clock, asked when a time is relative */
    enum bulk_line_format format;
    struct json_reader *json;
    struct json_member members[BULK_LINE_COLUMNS_MAX]; /* those used, then those ignored */
    size_t member_count;
    int columns[BULK_LINE_COLUMNS_MAX]; /* TSV, CSV: what each field is */
    size_t column_count;
};
void bulk_line_init(struct bulk_line_parser *p, struct cmd_context *c,
                    enum bulk_line_format format);
void bulk_line_done(struct bulk_line_parser *p);
/* Whether a first line is a heading of CSV: several names of columns, one of them tag. */
bool bulk_line_is_csv(const char *line, size_t len);
/* Whether a record of CSV (RFC 4180) goes on behind this line, because a quoted field does. open:
 * the lines before it left one open. */
bool bulk_line_is_open(bool open, const char *line, size_t len);
/* Whether line 1 is a heading. Of TSV, it has only names of fields or of columns of a task; or it
 * begins with one and has the field "tag". Of CSV, it always is one. If so its columns are taken
 * over. 1 yes, 0 no, ERR_DATA for an unknown column or without the column tag. */
int bulk_line_heading(struct bulk_line_parser *p, const char *line, size_t len, struct err *err)
    __attribute__((warn_unused_result));
/* ERR_DATA for a task that expires before it is due. Asks the clock if its time is relative. */
int bulk_line_check_expiry(struct cmd_context *c, const struct task_new *t, struct err *err)
    __attribute__((warn_unused_result));
/* One line, not blank. Appends its texts to the arena, also when it fails. ERR_DATA, without file
 * and line number. */
int bulk_line_parse(struct bulk_line_parser *p, const char *line, size_t len, struct buf *arena,
                    struct bulk_line *ret, struct err *err) __attribute__((warn_unused_result));

#endif
