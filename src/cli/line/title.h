/*
 * title.h - the first line of a screen that shows how things are now: what is shown, where, and
 * when.
 */
#ifndef DQ_CLI_LINE_TITLE_H
#define DQ_CLI_LINE_TITLE_H

#include "cli/line/cmd.h"

/* Appends `left` and, at the right end of a line of this width, the name of the installation,
 * server and database, and the time of this host. Nothing in it acts on a terminal. */
void title_put(struct buf *b, const struct cmd_context *c, const char *left, unsigned width);

#endif
