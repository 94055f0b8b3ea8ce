/*
 * handover.h - makes jobs of claimed tasks and gives them to the runner.
 */
#ifndef DQ_POLLER_HANDOVER_H
#define DQ_POLLER_HANDOVER_H

#include "base/err.h"
#include "poller/context.h"
#include "poller/flight.h"
#include "poller/handlers_table.h"
#include "store/row/task_array.h"

#include <stdint.h>

struct handover {
    const struct context *ctx;
    struct flight *flight;
};

/* Makes jobs of tasks that were claimed by a statement sent at sent_us; empties won. The table has
 * a handler for their tag. Jobs whose bodies came along are given to the runner if there is room,
 * the others are held. */
void handover_take(struct handover *h, struct handlers_table *table, struct tag_state *t,
                   struct task_array *won, int64_t sent_us);
/* Gives all held jobs back. */
void handover_return(struct handover *h, const char *why);

/* The duty: gives held jobs to the runner, and makes one statement for the bodies of the first long
 * one. Asks the database. 0 or a negative code with err. */
int64_t handover_next(const struct handover *h);
int handover_load(struct handover *h, struct err *err);

#endif
