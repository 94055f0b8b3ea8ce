/*
 * company.h - which tasks of a batch handler share a process. Pure.
 *
 * If a process ends without a verdict on some of its tasks, any of these may be the cause. So they
 * run in smaller and smaller company, apart from tasks that are above suspicion, until each is
 * alone.
 */
#ifndef DQ_BASE_COMPANY_H
#define DQ_BASE_COMPANY_H

#include <stdbool.h>
#include <stdint.h>

/* Tasks that are being put together into processes. */
struct company {
    uint32_t batch;     /* tasks per process, at most */
    uint32_t processes; /* that may still be begun */
    uint32_t tasks[32]; /* taken, by the logarithm of their company_most */
};

/* How many tasks may run in a process with this one, itself included. attempts: started so far;
 * own_verdict: the last of them ended with a verdict on this very task. The last of several
 * attempts is always alone. 1 if batch is 0 or 1. */
uint32_t company_most(uint32_t batch, uint32_t attempts, uint32_t max_attempts, bool own_verdict);

/* Takes a task with that company_most, which shares a process only with others that have the same;
 * false: that would be one process too many. */
bool company_take(struct company *c, uint32_t most);
/* When all are taken: how many of those with that company_most run together. Suspects are divided,
 * even if there are few. */
uint32_t company_size(const struct company *c, uint32_t most);

#endif
