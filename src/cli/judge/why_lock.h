/*
 * why_lock.h - the facts of why.h about locks of other sessions.
 */
#ifndef DQ_CLI_JUDGE_WHY_LOCK_H
#define DQ_CLI_JUDGE_WHY_LOCK_H

#include "cli/judge/why.h"
#include "store/db/db.h"

/* Decides again if another session has locked the row of the task, or that of its tag. Looks only
 * if nothing else explains why it waits, and it is so late that a claim has had its chance: the
 * look does not get in its way. Blocks on the database; its errors are ignored. */
void why_lock_see(struct db *db, struct why_facts *f, struct why *w);

#endif
