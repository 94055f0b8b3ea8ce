/*
 * schedules.h - which schedules did not do what they should have.
 */
#ifndef DQ_CLI_JUDGE_SCHEDULES_H
#define DQ_CLI_JUDGE_SCHEDULES_H

#include "base/buf.h"
#include "cli/judge/fleet.h"
#include "cli/judge/why.h"
#include "store/ask/schedule_store.h"

/* Appends why somebody has to look after a schedule: its last run has failed, none has succeeded
 * since a slot that came alarm_after ago (0: a period, at least 5 minutes), or no live dqd serves
 * its tag. False: nothing is wrong, or it is paused. A slot before it was set, changed or resumed
 * does not count. */
bool schedules_put_alarm(struct buf *b, const struct schedule *s, const struct fleet *fleet,
                         int64_t now_at);
/* Why a schedule does not run now, and what helps. Free *ret with why_lines_done. */
void schedules_why(const struct schedule *s, const struct fleet *fleet, int64_t now_at,
                   struct why *ret);

#endif
