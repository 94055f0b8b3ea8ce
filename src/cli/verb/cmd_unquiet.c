/*
 * cmd_unquiet.c - dq unquiet: the end of dq quiet.
 */
#include "cli/line/verbs.h"
#include "cli/many/act.h"
#include "store/fleet/tag_pause.h"

#include "base/mem.h"

#include <stdlib.h>

static int run(struct cmd_context *c, const void *values __attribute__((unused)), struct err *err)
{
    const char *name = c->operands[0];
    LOCAL_BY(act_done) struct act act = {0};

    act_init(&act, c, NULL, 0);
    char *row = mem_printf(TAG_PAUSE_DQD "%s", name);
    act.event.tag = row;
    int rc = tag_pause_end(c->db, &act.event, err);
    free(row);
    if (rc == 0)
        return err_set(err, ERR_NOT_FOUND, "%s is not quiet", name);
    if (rc > 0)
        cmd_note(c, "%s claims tasks again from its next heartbeat on", name);
    return rc < 0 ? rc : 0;
}

const struct cmd cmd_unquiet = {
    .name = "unquiet",
    .group = "change",
    .summary = "let a quiet dqd claim tasks again",
    .usage = "HOST[:PID]",
    .min_operands = 1,
    .max_operands = 1,
    .level = CMD_SCHEMA,
    .formats = OUT_ANY,
    .examples = "dq unquiet web1",
    .run = run,
};
