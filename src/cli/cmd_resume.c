/*
 * cmd_resume.c - dq resume: the end of dq pause.
 */
#include "cli/verbs.h"
#include "store/tag_store.h"

static int run(struct cmd_context *c, const void *values __attribute__((unused)), struct err *err)
{
    int rc = tag_store_resume(c->db, c->operands[0], err);
    if (rc == 0)
        return err_set(err, ERR_NOT_FOUND, "tag \"%s\" is not paused", c->operands[0]);
    if (rc < 0)
        return rc;
    cmd_wake(c, 0);
    cmd_note(c, "%s is resumed", c->operands[0]);
    return 0;
}

const struct cmd cmd_resume = {
    .name = "resume",
    .group = "tags and statistics",
    .summary = "start tasks of a paused tag again",
    .usage = "TAG",
    .min_operands = 1,
    .max_operands = 1,
    .level = CMD_SCHEMA,
    .formats = OUT_ANY,
    .examples = "dq resume mail.welcome",
    .run = run,
};
