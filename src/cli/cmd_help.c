/*
 * cmd_help.c - dq help.
 */
#include "cli/usage.h"
#include "cli/verbs.h"

#include <string.h>

static int run(struct cmd_context *c, const void *values __attribute__((unused)), struct err *err)
{
    struct buf b = BUF_INIT;
    int rc = 0;
    bool options = c->operand_count && strcmp(c->operands[0], "options") == 0;
    const struct cmd *cmd = c->operand_count && !options ? verbs_find(c->operands[0], err) : NULL;
    if (options)
        usage_put_global(&b);
    else if (cmd)
        usage_put_verb(&b, cmd);
    else if (c->operand_count == 0)
        usage_put_all(&b);
    else
        rc = err->code;
    out_write(&b);
    buf_done(&b);
    return rc;
}

const struct cmd cmd_help = {
    .name = "help",
    .group = "setup",
    .summary = "explain dq, or one of its commands",
    .usage = "[COMMAND | options]",
    .max_operands = 1,
    .level = CMD_NOTHING,
    .pages = true,
    .formats = OUT_BIT(OUT_TABLE),
    .examples = "dq help list\n"
                "dq help options",
    .run = run,
};
