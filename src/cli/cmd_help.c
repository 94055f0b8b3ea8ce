/*
 * cmd_help.c - dq help.
 */
#include "cli/usage.h"
#include "cli/verbs.h"

static int run(struct cmd_context *c, const void *values __attribute__((unused)), struct err *err)
{
    struct buf b = BUF_INIT;
    int rc = 0;
    const struct cmd *cmd = c->operand_count ? verbs_find(c->operands[0], err) : NULL;
    if (cmd)
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
    .usage = "[COMMAND]",
    .max_operands = 1,
    .level = CMD_NOTHING,
    .formats = OUT_BIT(OUT_TABLE),
    .run = run,
};
