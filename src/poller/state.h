/*
 * state.h - what the parts of the poller share. Private to src/poller.
 *
 * The poller is a set of duties (poller.c). Each says when it wants to run next and does one
 * bounded piece of work when that time has come; the tick runs those that are due and returns how
 * long to wait. Times named _us are microseconds on the steady clock of this host, times named _at
 * are milliseconds on the database's clock: the two meet only in dbclock.c.
 */
#ifndef DQ_POLLER_STATE_H
#define DQ_POLLER_STATE_H

#include "poller/claim.h"
#include "poller/dbclock.h"
#include "poller/duty.h"
#include "poller/flight.h"
#include "poller/lease.h"
#include "poller/look.h"
#include "poller/poller.h"
#include "poller/registry.h"
#include "poller/settle.h"
#include "poller/tags.h"
#include "poller/upkeep.h"
#include "poller/wakeup.h"
#include "runner/link.h"
#include "store/claim_ref.h"
#include "store/db.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

enum poller_phase { PHASE_RUN, PHASE_DRAIN, PHASE_KILL, PHASE_END };

struct poller {
    struct poller_options *o;
    struct conf *conf;
    struct handlers_table *table; /* current */
    /* the runner was asked to read the handlers file then; 0: it has answered, or the log says that
     * it has not */
    int64_t reload_us;
    struct db *db;
    struct link *link;
    struct claim_owner owner;
    struct dbclock clock;
    int signal_fd, lock_fd;
    int slots;
    bool dropped;             /* gave up root: cannot start another runner */
    struct rlimit file_limit; /* RLIMIT_FSIZE, as it was given */

    enum poller_phase phase;
    int64_t end_us;         /* POLLER_FOR: claims end; else NEVER_US */
    int64_t drain_until_us; /* PHASE_DRAIN: kill then; NEVER_US: no limit */
    int64_t give_up_us;     /* PHASE_DRAIN: results that cannot be settled are left to the lease */
    bool runner_gone;
    bool asked_to_end;  /* TERM or INT came */
    struct err failure; /* why it ends, code 0: as asked */

    struct look look; /* what to ask about waiting tasks next, and when */
    struct tag_set tags;
    struct claims claims;
    struct flight flight;
    struct leases leases;
    struct settle_results results;
    struct registry registry;
    struct upkeep upkeep;
    struct troubles troubles;
    struct wakeup wakeup;

    int64_t watchdog_us, watchdog_every_us;
    uint64_t ping_sent, ping_answered;
    int64_t ping_sent_us;
    int64_t ticked_us;
};

/* poller.c */
/* at once; code 0: as asked, else why */
void poller_end(struct poller *p, int code, const char *text);
const char *poller_mode_name(enum poller_mode m);
uint64_t poller_random(void);

#endif
