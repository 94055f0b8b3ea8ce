/*
 * bulk.h - `dq add --from`: tasks from a file, one per line (NDJSON, TSV) or record (CSV).
 */
#ifndef DQ_CLI_MANY_BULK_H
#define DQ_CLI_MANY_BULK_H

#include "cli/line/cmd.h"
#include "store/ask/task_add.h"

struct bulk_options {
    const char *from; /* path or "-" */
    int format;       /* enum bulk_line_format; -1: guess */
    enum key_conflict on_conflict;
    uint64_t skip;   /* lines not to be added */
    int64_t over_ms; /* their times are spread evenly over this long, in their order */
    bool dry_run;
    bool sql; /* print the statements instead */
};
/* Adds them all, chunk by chunk, and prints how many, or prints the statements that would. The
 * error for a bad line says what was added before it and how to continue. */
int bulk_run(struct cmd_context *c, const struct bulk_options *o, struct err *err)
    __attribute__((warn_unused_result));

#endif
