/*
 * outcome.h - how a task goes on after an attempt that ended with a certain result. Pure.
 */
#ifndef DQ_RUNNER_OUTCOME_H
#define DQ_RUNNER_OUTCOME_H

#include "base/task.h"
#include "base/when.h"
#include "conf/handlers.h"
#include "runner/message.h"

#include <stdint.h>

/* The event that the result of this attempt is. *ret_delay_ms: until the next attempt, set if the
 * task is retried or snoozed. max_attempts 0: by the handler's ladder. random: as retry_delay_ms.
 * due_ms: how long ago the task was first due; a snooze beyond OUTCOME_SNOOZE_MOST_MS from then is
 * a failed attempt, which waits as long as was asked. */
#define OUTCOME_SNOOZE_MOST_MS (7 * WHEN_DAY)
#define OUTCOME_SNOOZE_OVER "a snooze beyond 7 days counts as an attempt: %s"
enum task_event outcome_event(const struct message_result *r, const struct handler *h,
                              uint32_t attempt, uint32_t max_attempts, uint64_t random,
                              int64_t due_ms, int64_t *ret_delay_ms);

/* How the attempt ended, as it is recorded: with the error OUTCOME_SNOOZE_OVER if it is not what r
 * says. */
enum task_outcome outcome_recorded(const struct message_result *r, enum task_event event);

#endif
