/*
 * duty.h - the duties of the poller: what it asks of the database, and in which order.
 *
 * Each duty reports when it wants to run next, and does one bounded piece of work when that time
 * has come. struct duties is the whole that they work on, for duty.c and poller.c; the parts know
 * each other only as duty_init connects them.
 */
#ifndef DQ_POLLER_DUTY_H
#define DQ_POLLER_DUTY_H

#include "base/err.h"
#include "conf/handlers.h"
#include "poller/breaker.h"
#include "poller/claim.h"
#include "poller/context.h"
#include "poller/flight.h"
#include "poller/follow.h"
#include "poller/handover.h"
#include "poller/hold.h"
#include "poller/lease.h"
#include "poller/look.h"
#include "poller/metrics.h"
#include "poller/minute.h"
#include "poller/registry.h"
#include "poller/schedule.h"
#include "poller/served.h"
#include "poller/settle.h"
#include "poller/tags.h"
#include "poller/trouble.h"
#include "poller/upkeep.h"
#include "poller/wakeup.h"
#include "poller/withdraw.h"

#include <stdbool.h>
#include <stdint.h>

#define DUTY_MOST 18

struct duties {
    struct context ctx;
    struct look look; /* what to ask about waiting tasks next, and when */
    struct tag_set tags;
    struct minute minute;
    struct breakers breakers;
    struct holds holds;
    struct metrics metrics;
    struct settle_results results;
    struct flight flight;
    struct handover handover;
    struct follow follow;
    struct leases leases;
    struct registry registry;
    struct served served;
    struct claims claims;
    struct withdrawals withdrawals;
    struct upkeep upkeep;
    struct schedules schedules;
    struct wakeup wakeup;
    bool schema_known; /* checked on the first connection */
    struct outage outage;
    struct trouble troubles[DUTY_MOST]; /* by the rows of duty.c */
    void (*take_reports)(void *arg);    /* of the runner, between two duties */
    void *take_arg;
};

/* ctx is set already, but for the link. Takes the handlers over. globs: of --tag, the caller's;
 * NULL: all tags. mode: as others see it. passes: this dqd ends by itself, and another
 * one is to follow. */
void duty_init(struct duties *d, const struct look_settings *look, struct handlers *handlers,
               const char *const *globs, const char *mode, bool passes);
void duty_free(struct duties *d);

/* Runs the duties whose time has come, if the database is there. May block on it. 0, or a negative
 * code with err if that failure ends dqd. */
int duty_run(struct duties *d, struct err *err);
/* Takes the wake-ups that have come, if it is time. */
void duty_take_wakeup(struct duties *d);
int64_t duty_next(const struct duties *d); /* when the next one wants to run */

/* Replaces the handlers, which are taken over. */
void duty_set_handlers(struct duties *d, struct handlers *handlers);

/* Nothing is claimed that the database does not know the end of. */
bool duty_settled(const struct duties *d);
/* The error of the first duty that the server refuses; NULL: none. */
const struct err *duty_refused(const struct duties *d);

#endif
