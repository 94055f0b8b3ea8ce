/*
 * schedule.h - adds the tasks of schedules when their slots come, and records how their runs have
 * ended: two duties. Without schedules they make no statement.
 */
#ifndef DQ_POLLER_SCHEDULE_H
#define DQ_POLLER_SCHEDULE_H

#include "base/err.h"
#include "poller/context.h"
#include "poller/registry.h"

#include <stdbool.h>
#include <stdint.h>

struct schedules {
    struct context *ctx;
    const struct registry *registry;
    int64_t look_at; /* when a decision can be made; TASK_TIME_NONE: never */
    int64_t not_before_us;
    bool open;   /* the runs of some slots have not ended */
    bool faulty; /* the log says that some cannot be decided */
};

void schedule_init(struct schedules *s, struct context *ctx, const struct registry *registry);
/* After each heartbeat: it has asked for the next slot, and for open ones. */
void schedule_heard(struct schedules *s);

/* Decides slots. Asks the database. *ret_added is set if tasks have been added. */
int64_t schedule_next(const struct schedules *s);
int schedule_run(struct schedules *s, bool *ret_added, struct err *err);

/* Records how runs have ended. Asks the database. */
int64_t schedule_harvest_next(const struct schedules *s);
int schedule_harvest(struct schedules *s, struct err *err);

#endif
