/*
 * outcome.h - how a task goes on after an attempt that ended with a certain result. Pure.
 */
#ifndef DQ_RUNNER_OUTCOME_H
#define DQ_RUNNER_OUTCOME_H

#include "base/task.h"
#include "conf/handlers.h"
#include "runner/message.h"

#include <stdint.h>

/* The event that the result of this attempt is. *ret_delay_ms: until the next attempt, set if the
 * task is retried. max_attempts 0: by the handler's ladder. random: as retry_delay_ms. */
enum task_event outcome_event(const struct message_result *r, const struct handler *h,
                              uint32_t attempt, uint32_t max_attempts, uint64_t random,
                              int64_t *ret_delay_ms);

#endif
