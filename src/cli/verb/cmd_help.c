/*
 * cmd_help.c - dq help.
 */
#include "cli/line/option.h"
#include "cli/line/usage.h"
#include "cli/line/verbs.h"

#include <string.h>

static const struct {
    const char *name;
    void (*put)(struct buf *b, const struct cmd *const *verbs);
} topics[] = {{"filters", usage_put_filters}, {"options", usage_put_global}};

static int run(struct cmd_context *c, struct err *err)
{
    const char *word = c->operand_count ? c->operands[0] : NULL;
    void (*put)(struct buf * b, const struct cmd *const *verbs) = word ? NULL : usage_put_all;
    struct buf b = BUF_INIT;
    for (size_t i = 0; word && i < sizeof topics / sizeof topics[0]; i++)
        if (strcmp(word, topics[i].name) == 0)
            put = topics[i].put;
    const struct cmd *cmd = put ? NULL : verbs_find(word, err);
    if (cmd && cmd->commands && c->operand_count > 1)
        cmd = option_command(cmd, c->operands[1], err);
    else if (cmd && c->operand_count > 1)
        return err_set(err, ERR_USAGE, "unexpected argument \"%s\"", c->operands[1]);
    if (put)
        put(&b, verbs_table);
    else if (cmd)
        usage_put_verb(&b, cmd);
    out_take(&b);
    return put || cmd ? 0 : err->code;
}

const struct cmd cmd_help = {
    .name = "help",
    .max_operands = 2,
    .level = CMD_NOTHING,
    .pages = true,
    .formats = OUT_BIT(OUT_TABLE),
    .run = run,
};
