/*
 * usage.h - the texts of `dq help` and `dq help WORD`, from the tables of verbs and options.
 */
#ifndef DQ_CLI_LINE_USAGE_H
#define DQ_CLI_LINE_USAGE_H

#include "base/buf.h"
#include "cli/line/cmd.h"

/* verbs: NULL-terminated, as verbs_table. */
void usage_put_all(struct buf *b, const struct cmd *const *verbs);
void usage_put_global(struct buf *b, const struct cmd *const *verbs);
void usage_put_filters(struct buf *b, const struct cmd *const *verbs);
void usage_put_verb(struct buf *b, const struct cmd *cmd);

#endif
