/*
 * trouble.h - failures that last: when the duty is tried again, and when the log mentions them.
 */
#ifndef DQ_POLLER_TROUBLE_H
#define DQ_POLLER_TROUBLE_H

#include "base/err.h"
#include "poller/context.h"

#include <stdbool.h>
#include <stdint.h>

/* A lock that is gone by then is not worth a line in the log; what lasts is logged again, not at
 * every try. */
#define TROUBLE_LOCK_US INT64_C(1000000)
#define TROUBLE_AGAIN_US INT64_C(600000000)

/* The server refuses the statements of one duty; {0}: it does not. */
struct trouble {
    int64_t since_us; /* 0: the duty works */
    int64_t retry_us; /* not before; 0: it is not put off */
    int64_t backoff_us;
    struct err said; /* what was logged last */
    int64_t said_us;
    bool open; /* it was logged, and that it works again was not */
};
/* The purpose of a duty. */
enum trouble_use {
    TROUBLE_PROMISE, /* tasks wait for it: it is tried again soon */
    TROUBLE_RECORD,  /* operators look at it: it is tried again when that can hold up little else */
};
/* A statement of the duty failed: it is put off, for longer each time. what is the log's event,
 * which appears once, and every ten minutes while the error lasts. */
void trouble_failed(struct trouble *t, const struct context *ctx, enum trouble_use use,
                    const char *duty, const char *what, const struct err *err, int64_t now_us);
void trouble_over(struct trouble *t, const char *duty);

/* There is no database that takes writes; {0}: there is one. */
struct outage {
    int64_t since_us; /* 0: it is there */
    int64_t retry_us; /* no statement before; 0: none is put off */
    int64_t backoff_us;
    struct err last; /* why the last try failed */
    unsigned said;   /* a bit for each err_code that was logged of it */
    int64_t said_us; /* the first of these */
};
/* What failed still waits, but other statements of the duty work, and are not put off. */
void trouble_goes_on(struct trouble *t);
/* A connection failed or could not be made: it is closed, and all duties are put off, for longer
 * each time. what is the log's event, which appears once for each kind of failure, and every ten
 * minutes while it lasts. */
void trouble_outage(struct outage *o, const struct context *ctx, const char *what,
                    const struct err *err, int64_t now_us);
/* The database is there. */
void trouble_outage_over(struct outage *o);

#endif
