/*
 * outcome.c - see outcome.h.
 */
#include "runner/outcome.h"

#include "base/retry.h"

enum task_event outcome_event(const struct message_result *r, const struct handler *h,
                              uint32_t attempt, uint32_t max_attempts, uint64_t random,
                              int64_t due_ms, int64_t *ret_delay_ms)
{
    int64_t delay_ms;

    if (r->outcome == OUTCOME_DONE)
        return TASK_SUCCEED;
    if (r->outcome == OUTCOME_KILLED) /* not the handler's fault: any dqd takes it over */
        return h->on_lease_expiry == HANDLER_EXPIRY_FAIL ? TASK_GIVE_UP : TASK_TAKE_BACK;
    if (r->outcome == OUTCOME_SNOOZED && due_ms + r->retry_after_ms <= OUTCOME_SNOOZE_MOST_MS) {
        *ret_delay_ms = r->retry_after_ms;
        return TASK_SNOOZE;
    }
    delay_ms = retry_delay_ms(&h->retry, attempt, max_attempts, random);
    if (r->permanent || delay_ms < 0)
        return TASK_GIVE_UP;
    *ret_delay_ms = r->retry_after_ms >= 0 ? r->retry_after_ms : delay_ms;
    return TASK_TRY_LATER;
}

enum task_outcome outcome_recorded(const struct message_result *r, enum task_event event)
{
    bool over = r->outcome == OUTCOME_SNOOZED && !task_transition(event)->keeps_first;

    return over ? OUTCOME_VERDICT : r->outcome;
}
