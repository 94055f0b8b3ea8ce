/*
 * company.c - see company.h. Invariant: between two verdicts of its own, a task shares no more than
 * log2(batch) attempts with others, and never its last one, unless it has only one.
 */
#include "base/company.h"

#include <sys/param.h>

uint32_t company_most(uint32_t batch, uint32_t attempts, uint32_t max_attempts, bool own_verdict)
{
    if (attempts && attempts + 1 >= max_attempts)
        return 1;
    return MAX(own_verdict ? batch : batch >> MIN(attempts, 31), 1);
}

static uint32_t kind(uint32_t most)
{
    return 31 - (uint32_t)__builtin_clz(most);
}

bool company_take(struct company *c, uint32_t most)
{
    uint32_t *tasks = &c->tasks[kind(most)];

    if (*tasks % most == 0) {
        if (!c->processes)
            return false;
        c->processes--;
    }
    ++*tasks;
    return true;
}

uint32_t company_size(const struct company *c, uint32_t most)
{
    uint32_t half = (c->tasks[kind(most)] + 1) / 2;

    return most < c->batch ? MIN(most, half) : most;
}
