/*
 * duty.h - what the poller asks of the database, in which order.
 */
#ifndef DQ_POLLER_DUTY_H
#define DQ_POLLER_DUTY_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct poller;

/* What is wrong with one duty, though the database is there. */
#define DUTY_COUNT 9
struct duty_trouble {
    int64_t since_us; /* 0: it works */
    struct err said;  /* what was logged last */
    int64_t said_us;
    bool open;        /* it was logged, and that it works again was not */
    int64_t retry_us; /* not before; 0: it is not put off */
    int64_t backoff_us;
};

struct troubles {
    bool schema_known; /* checked on the first connection */
    int64_t away_us;   /* since when there is no database that takes writes; 0: it is there */
    int64_t retry_us;  /* no statement before; 0: none is put off */
    int64_t backoff_us;
    struct err away;      /* why the last try failed */
    unsigned away_said;   /* a bit for each err_code that was logged of it */
    int64_t away_said_us; /* the first of these */
    struct duty_trouble duties[DUTY_COUNT];
};

void duty_run(struct poller *p);           /* those whose time has come, if the database is there */
int64_t duty_next(const struct poller *p); /* when the next one wants to run */

#endif
