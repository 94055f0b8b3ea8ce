/*
 * bulk.h - `dq add --from`: tasks from a file, one per line (NDJSON, TSV) or record (CSV).
 */
#ifndef DQ_CLI_MANY_BULK_H
#define DQ_CLI_MANY_BULK_H

#include "cli/line/cmd.h"
#include "store/ask/task_add.h"

/* The command line of dq add, of one task, too. Numbers that are not given are -1. */
struct bulk_values {
    const char *key, *from; /* from: path or "-" */
    int format;             /* enum bulk_line_format; -1: guess */
    int on_conflict, level;
    int64_t skip;    /* lines not to be added */
    int64_t over_ms; /* their times are spread evenly over this long, in their order */
    int64_t in_ms, max_attempts, attempted, retry_for_ms, expires_ms;
    struct cmd_when at, expires_at;
    bool debounce, dry_run;
    bool sql; /* print the statements instead */
};
enum key_conflict bulk_conflict(const struct bulk_values *v);
/* Adds them all, chunk by chunk, and prints how many, or prints the statements that would. The
 * error for a bad line says what was added before it and how to continue. */
int bulk_run(struct cmd_context *c, const struct bulk_values *v, struct err *err)
    __attribute__((warn_unused_result));

#endif
