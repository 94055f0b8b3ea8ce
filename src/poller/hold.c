/*
 * hold.c - see hold.h. Invariant: a hold leaves the queue only when the store has reported what
 * became of it; those of other limits do not wait for one whose row is locked, unless each would
 * wait as long, one after the other.
 */
#include "poller/hold.h"

#include "base/log.h"
#include "base/log_fold.h"
#include "base/mem.h"
#include "base/retry.h"
#include "base/when.h"
#include "store/fleet/limit_store.h"

#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

/* A try that takes this long has waited: for a row, if the server has no NOWAIT, or the table. */
#define WAITED_US INT64_C(500000)

static struct hold *find(const struct holds *h, const char *limit)
{
    for (size_t i = 0; i < h->count; i++)
        if (strcmp(h->items[i].limit, limit) == 0)
            return &h->items[i];
    return NULL;
}

void hold_queue(struct holds *h, const char *limit, int64_t for_ms, const char *reason)
{
    struct hold *x = find(h, limit);

    if (!x) {
        MEM_ROOM(h->items, h->count, h->cap);
        x = &h->items[h->count++];
        *x = (struct hold){.limit = mem_strdup(limit), .queued_us = when_steady_us()};
    }
    x->for_ms = MAX(x->for_ms, for_ms);
    free(x->reason);
    x->reason = mem_strdup(reason);
}

bool hold_has(const struct holds *h, const char *limit)
{
    return find(h, limit);
}

bool hold_waits(const struct holds *h)
{
    const int64_t since_us = when_steady_us() - context_lease_us(h->ctx);

    for (size_t i = 0; i < h->count; i++)
        if (h->items[i].queued_us >= since_us)
            return true;
    return false;
}

static void drop(struct holds *h, size_t i)
{
    free(h->items[i].limit);
    free(h->items[i].reason);
    h->items[i] = h->items[--h->count];
}

int64_t hold_next(const struct holds *h)
{
    int64_t next_us = NEVER_US;

    for (size_t i = 0; i < h->count; i++)
        next_us = MIN(next_us, h->items[i].again_us);
    return MAX(next_us, h->not_before_us);
}

int hold_flush(struct holds *h, struct err *err)
{
    const int64_t sent_us = when_steady_us();
    char text[WHEN_TEXT_SIZE];
    size_t at = 0;

    for (size_t i = 1; i < h->count; i++)
        if (h->items[i].again_us < h->items[at].again_us)
            at = i;
    struct hold *x = &h->items[at];
    int rc = limit_store_hold(h->ctx->db, x->limit, x->for_ms, x->reason, err);
    if (rc == ERR_LOCKED) {
        const int64_t now_us = when_steady_us();

        x->locked_us = retry_pause_locked(x->locked_us, now_us - sent_us);
        x->again_us = now_us + x->locked_us;
        if (now_us - sent_us > WAITED_US)
            h->not_before_us = x->again_us;
        return 0;
    }
    if (rc == ERR_TRANSIENT || (rc < 0 && !db_connected(h->ctx->db)))
        return rc;
    log_fold(when_steady_us(), rc < 0 ? LOG_WARN : LOG_NOTE,
             rc < 0 ? "cannot hold a limit as a handler asked"
                    : "a handler asked to hold its limit",
             x->limit, rc < 0 ? err->text : x->reason, "limit=%s for=%s error=%s",
             log_quote(x->limit), when_format_duration(text, x->for_ms),
             log_quote(rc < 0 ? err->text : x->reason));
    drop(h, at);
    return 0;
}

void hold_free(struct holds *h)
{
    for (; h->count; drop(h, 0))
        log_event(LOG_WARN, "the hold of a limit was not recorded", "limit=%s",
                  log_quote(h->items[0].limit));
    free(h->items);
    h->items = NULL;
}
