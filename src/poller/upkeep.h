/*
 * upkeep.h - what any poller does for all: two duties.
 */
#ifndef DQ_POLLER_UPKEEP_H
#define DQ_POLLER_UPKEEP_H

#include "base/err.h"
#include "poller/aside.h"
#include "poller/context.h"
#include "poller/flight.h"
#include "poller/look.h"
#include "poller/minute.h"
#include "poller/tags.h"
#include "store/work/retention_store.h"

#include <stdint.h>

struct upkeep {
    const struct context *ctx;
    struct look *look;
    struct tag_set *tags;
    const struct flight *flight;
    struct minute *minute;
    int64_t reap_us, retention_us, renew_us; /* when that is due */
    int64_t reap_early_us;                   /* when it is due if a look for tasks was just made */
    int64_t reap_cost_us;                    /* of the last look for ended leases */
    /* the next look for ended leases begins behind this tag; NULL: with the first */
    char *after;
    struct aside aside; /* tasks that could not be taken back */
    struct retention_place places[TASK_STATUS_COUNT];
    struct upkeep_bad {
        int64_t until_us; /* till then, tasks that could not be deleted are passed over; 0: try */
        int64_t pause_us;
    } bad[TASK_STATUS_COUNT];
    bool cut, late;   /* of one of them, by the last sweep */
    size_t part;      /* with which the next sweep begins */
    size_t expire_at; /* the tag whose expired tasks are looked for next */
};

void upkeep_init(struct upkeep *u, const struct context *ctx, struct look *look,
                 struct tag_set *tags, const struct flight *flight, struct minute *minute);
void upkeep_free(struct upkeep *u);

/* The duty that takes back tasks whose lease has ended. Asks the database. 0 or a negative code
 * with err. */
int64_t upkeep_reap_next(const struct upkeep *u);
int upkeep_reap(struct upkeep *u, struct err *err);
/* The database is back: until other dqds are, too, nothing is taken back from them. */
void upkeep_outage_over(struct upkeep *u, int64_t since_us);

/* The duty that deletes tasks which have been finished for long enough, and old counts and events
 * ([retention]). Asks the database. 0 or a negative code with err. */
int64_t upkeep_retention_next(const struct upkeep *u);
int upkeep_retention(struct upkeep *u, struct err *err);

#endif
