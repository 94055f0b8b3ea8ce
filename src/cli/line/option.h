/*
 * option.h - reads a command line of dq by the tables of options.
 */
#ifndef DQ_CLI_LINE_OPTION_H
#define DQ_CLI_LINE_OPTION_H

#include "cli/line/cmd.h"

/* the options of every verb; they may stand before the verb, too */
extern const struct cmd_option option_global[];
extern const size_t option_global_count;

/* what --status takes, besides several of them with commas */
extern const char *const option_statuses[]; /* NULL-terminated */

/* Reads the command line into c, which is all zero but for now_at: global options, the verb, its
 * options and operands. find: as verbs_find. ERR_USAGE, with the nearest word for a misspelt one.
 * c->cmd stays NULL if no verb is given. argv is reordered. */
int option_parse(struct cmd_context *c, const struct cmd *(*find)(const char *, struct err *),
                 int argc, char **argv, struct err *err) __attribute__((warn_unused_result));
/* The one of cmd->commands that is named by a word. NULL: none is, with err. */
const struct cmd *option_command(const struct cmd *cmd, const char *word, struct err *err);
/* The same behind the verb, which is c->cmd, and argv[0]. */
int option_parse_own(struct cmd_context *c, int argc, char **argv, struct err *err)
    __attribute__((warn_unused_result));

/* Appends the options of the verb that were given with a value, as words of a shell:
 * ` --tag mail --status failed`. bodies: also those with data of bodies. */
void option_put_given(struct buf *b, const struct cmd_context *c, bool bodies);

#endif
