/*
 * why_fleet.h - the facts of why.h that the fleet knows.
 */
#ifndef DQ_CLI_JUDGE_WHY_FLEET_H
#define DQ_CLI_JUDGE_WHY_FLEET_H

#include "cli/judge/fleet.h"
#include "cli/judge/why.h"
#include "store/ask/why_store.h"

/* Adds the live dqds to the facts: sets dqds, dqd_count, tasks and limit.running of f, for a tag
 * whose tasks these owners run. The dqds are heap memory, the caller's; their texts are those of
 * the fleet. */
struct why_dqd *why_fleet_see(const struct fleet *fleet, const char *tag,
                              const struct why_owner *owners, size_t count, struct why_facts *f)
    __attribute__((warn_unused_result));
bool why_fleet_is_owner(const struct poller_info *dqd, const unsigned char *token);

#endif
