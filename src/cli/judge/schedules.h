/*
 * schedules.h - which schedules did not do what they should have.
 */
#ifndef DQ_CLI_JUDGE_SCHEDULES_H
#define DQ_CLI_JUDGE_SCHEDULES_H

#include "base/buf.h"
#include "store/ask/schedule_store.h"

/* Appends why somebody has to look after a schedule: its last run has failed, or none has succeeded
 * since a slot that came alarm_after ago (0: a period, at least 5 minutes). False: nothing is
 * wrong, or it is paused. A slot before it was set, changed or resumed does not count. */
bool schedules_put_alarm(struct buf *b, const struct schedule *s, int64_t now_at);

#endif
