/*
 * why_facts.h - the facts of why.h that the fleet knows, and those about locks of other sessions.
 */
#ifndef DQ_CLI_JUDGE_WHY_FACTS_H
#define DQ_CLI_JUDGE_WHY_FACTS_H

#include "cli/judge/fleet.h"
#include "cli/judge/why.h"
#include "store/ask/why_store.h"

/* Adds the live dqds to the facts: sets dqds, dqd_count, tasks and limit.running of f, for a tag
 * whose tasks these owners run. The dqds are heap memory, the caller's; their texts are those of
 * the fleet. */
struct why_dqd *why_facts_see(const struct fleet *fleet, const char *tag,
                              const struct poller_tasks *owners, size_t count, struct why_facts *f)
    __attribute__((warn_unused_result));
bool why_facts_is_owner(const struct poller_info *dqd, const unsigned char *token);

/* Decides again if another session has locked the row of the task, or that of its tag. Looks only
 * if nothing else explains why it waits, and it is so late that a claim has had its chance, or if
 * the result of one that must have ended is not recorded: the look does not get in their way.
 * Blocks on the database; its errors are ignored. */
void why_facts_lock(struct db *db, struct why_facts *f, struct why *w);

#endif
