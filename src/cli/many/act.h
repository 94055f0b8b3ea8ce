/*
 * act.h - what this run of dq does, for the record: who, which verb, with which options.
 */
#ifndef DQ_CLI_MANY_ACT_H
#define DQ_CLI_MANY_ACT_H

#include "cli/line/cmd.h"
#include "store/fleet/event_store.h"

struct act {
    struct event_act event; /* the caller sets its tag */
    char *actor, *arguments;
};
/* The act of this command line. ids: the tasks that it names, count of them; NULL: none. */
void act_init(struct act *a, const struct cmd_context *c, const uint64_t *ids, size_t count);
/* It is about a thing of this name, which its arguments begin with. */
void act_about(struct act *a, const char *name);
void act_done(struct act *a);

#endif
