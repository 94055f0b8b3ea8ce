/*
 * none.h - what is said of a table without rows.
 */
#ifndef DQ_CLI_LINE_NONE_H
#define DQ_CLI_LINE_NONE_H

#include "cli/line/cmd.h"

/* For people, on stderr: the text, and if `tags` (NULL: all) is a single name that no task has, the
 * nearest one. May block on the database; its errors are ignored. */
void none_note(struct cmd_context *c, const char *text, const char *tags);
/* Only the latter, for the name of a tag. Returns whether something was said. */
bool none_note_nearest(struct cmd_context *c, const char *tag);

#endif
