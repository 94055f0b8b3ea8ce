/*
 * act.h - what this run of dq does, for the record: who, which verb, with which options.
 */
#ifndef DQ_CLI_MANY_ACT_H
#define DQ_CLI_MANY_ACT_H

#include "cli/line/cmd.h"
#include "store/ask/schedule_store.h"
#include "store/fleet/event_store.h"

struct act {
    struct event_act event;
    char *actor, *arguments;
};
/* The act of this command line, about a tag (NULL: none, or several). name: of the thing that it is
 * about, with which its arguments begin; NULL: none. Free it with act_done. */
struct act act_of(const struct cmd_context *c, const char *name, const char *tag);
/* The same, about tasks that the command line names; NULL: it names none. */
struct act act_of_tasks(const struct cmd_context *c, const uint64_t *ids, size_t count,
                        const char *tag);
/* Makes changes of schedules (schedule_store_change, all_of and ret_bad as there) as one act, which
 * is about a thing of this name; again if other sessions are in the way. */
int act_schedules(const struct cmd_context *c, const char *name, const char *tag,
                  struct schedule_change *changes, size_t count, const char *all_of,
                  size_t *ret_bad, struct err *err) __attribute__((warn_unused_result));
void act_done(struct act *a);

#endif
