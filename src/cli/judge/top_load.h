/*
 * top_load.h - what `dq top` shows, from the database. Blocks on it; what it reads is
 * bounded, however many tasks there are. It locks the first task of up to ten late tags and their
 * rows of dq_limit, each for one statement that waits for no row, and up to a second for a table.
 */
#ifndef DQ_CLI_JUDGE_TOP_LOAD_H
#define DQ_CLI_JUDGE_TOP_LOAD_H

#include "cli/line/cmd.h"
#include "cli/show/top_view.h"

/* tag_glob NULL: all tags. Free ret with top_view_free; on failure it is unchanged. */
int top_load(struct cmd_context *c, const char *tag_glob, struct top_data *ret, struct err *err)
    __attribute__((warn_unused_result));

#endif
