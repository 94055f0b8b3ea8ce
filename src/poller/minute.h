/*
 * minute.h - what this dqd has done, counted by minute and tag in memory, and written to dq_minute
 * with the heartbeat: a duty. No claim and no result waits for it.
 */
#ifndef DQ_POLLER_MINUTE_H
#define DQ_POLLER_MINUTE_H

#include "base/err.h"
#include "base/task.h"
#include "poller/context.h"
#include "store/fleet/minute_store.h"
#include "store/row/settlement.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Tags that are counted apart; further ones are counted together, as MINUTE_OTHER_TAGS. One that
 * has done nothing for a while makes room for a new one. */
#define MINUTE_TAGS_MOST 500

struct minute_tag {
    char *name;
    struct counts total; /* since the start */
    struct counts now;   /* in the current minute */
    bool unsaved;        /* now has counts that are not in the database */
};

struct minute {
    const struct context *ctx;
    int64_t at;              /* when the current minute began, by the database's clock */
    struct minute_tag *tags; /* by name; at most MINUTE_TAGS_MOST, and the one for the others */
    size_t count, last;      /* last: index of the tag counted last */
    size_t unsaved;          /* how many of them are */
    struct minute_row *past; /* of minutes that have ended, not yet in the database */
    size_t past_count;
    int64_t flush_us; /* when all of it was written last */
};

void minute_init(struct minute *m, const struct context *ctx);
void minute_free(struct minute *m);

/* An attempt began, late_ms after it was due. */
void minute_started(struct minute *m, const char *tag, int64_t late_ms);
/* An attempt ended, and the database has recorded it. took_ms: from its start; negative: not known.
 * An attempt that never started does not count. */
void minute_ended(struct minute *m, const char *tag, enum task_event event,
                  enum settlement_fault fault, int64_t took_ms);

/* Tasks were cancelled because they had expired. */
void minute_expired(struct minute *m, const char *tag, uint64_t tasks);

/* The duty: writes the counts, in one statement. After a failure they are kept. A crash loses those
 * of one heartbeat. Asks the database. 0 or a negative code with err. */
int64_t minute_next(const struct minute *m);
int minute_flush(struct minute *m, struct err *err);
/* At the end: writes what is left, if there is a connection. */
void minute_leave(struct minute *m);

#endif
