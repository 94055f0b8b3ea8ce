/*
 * live.h - a verb's table on a screen of its own, again and again, until interrupted or q.
 */
#ifndef DQ_CLI_LINE_LIVE_H
#define DQ_CLI_LINE_LIVE_H

#include "cli/line/cmd.h"

#define LIVE_LEAST_S 1
/* A row of a table of struct cmd_option; the field is -1 if it was not given. */
/* clang-format off */
#define LIVE_OPTION(field) {"watch", 0, CMD_DURATION, (field), "D", NULL, 0}
/* clang-format on */

/* Runs the verb, with --watch again and again: it prints a table, which is drawn under a title.
 * While the database is away, the last one stays. ERR_USAGE: not a table, or no terminal. */
int live_run(struct cmd_context *c, struct err *err) __attribute__((warn_unused_result));

/* Appends the first line of a screen that shows how things are now: `left` and, at the right end of
 * a line of this width, the name of the installation, server and database, and the time of this
 * host. Nothing in it acts on a terminal. */
void live_title(struct buf *b, const struct cmd_context *c, const char *left, unsigned width);

#endif
