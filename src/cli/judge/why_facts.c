/*
 * why_facts.c - see why_facts.h.
 */
#include "cli/judge/why_facts.h"

#include "base/mem.h"
#include "base/when.h"
#include "store/ask/lock_store.h"

#include <string.h>
#include <sys/param.h>
#include <time.h>

bool why_facts_is_owner(const struct poller_info *dqd, const unsigned char *token)
{
    return memcmp(token, dqd->token, sizeof dqd->token) == 0;
}

static struct why_dqd see(const struct fleet *fleet, const struct poller_info *p, const char *tag)
{
    static const int serves[] = {[FLEET_SERVES_NOT] = WHY_SERVES_NOT,
                                 [FLEET_SERVES] = WHY_SERVES,
                                 [FLEET_SERVES_UNKNOWN] = WHY_SERVES_UNKNOWN};
    const struct handler_row *h;
    enum fleet_serves s = fleet_dqd_serves(fleet, p, tag, &h);
    const struct handler_rest *rest = fleet_rest(fleet, p, tag);
    struct why_dqd d = {.host = p->host,
                        .pid = p->pid,
                        .silent_ms = p->silent_ms,
                        .slots = p->slots,
                        .running = p->running,
                        .file = p->handlers_file};

    d.serves = serves[s];
    d.quiet = p->quiet;
    d.between = poller_store_is_between(p);
    d.next_ms = d.between ? MAX(p->next_pass_at - p->last_seen_at - p->silent_ms, 0) : 0;
    if (h) {
        d.timeout_ms = h->timeout_ms;
        d.line = h->line;
        d.batch = h->batch;
        d.max_running = h->max_running;
    }
    if (rest && rest->reason == HANDLER_RESTS) {
        d.rest_error = rest->error;
        d.rest_ms = p->next_pass_at == TASK_TIME_NONE ? rest->for_ms : 0;
    } else if (rest) {
        d.hindrance = rest->error;
        d.slow = rest->reason == HANDLER_SLOW;
    }
    return d;
}

/* What one that is ending still runs counts for those beside it, as poller_store_ending has it. */
static void see_ending(const struct fleet *fleet, const struct poller_info *p,
                       const struct poller_tasks *owners, size_t count, struct why_dqd *d)
{
    for (size_t i = 0; i < fleet->count; i++) {
        const struct poller_info *q = &fleet->dqds[i];
        if (p->slots == 0 || !q->alive || q->slots || strcmp(p->place, q->place) != 0)
            continue;
        d->running += q->running;
        for (size_t k = 0; k < count; k++)
            if (why_facts_is_owner(q, owners[k].token))
                d->elsewhere += owners[k].tasks;
    }
    d->tasks += d->elsewhere;
}

struct why_dqd *why_facts_see(const struct fleet *fleet, const char *tag,
                              const struct poller_tasks *owners, size_t count, struct why_facts *f)
{
    struct why_dqd *dqds = mem_zero(fleet->count + 1, sizeof *dqds);

    f->dqd_count = 0;
    for (size_t i = 0; i < fleet->count; i++) {
        const struct poller_info *p = &fleet->dqds[i];
        if (!p->alive)
            continue;
        struct why_dqd *d = &dqds[f->dqd_count++];
        *d = see(fleet, p, tag);
        for (size_t k = 0; k < count; k++)
            if (why_facts_is_owner(p, owners[k].token))
                d->tasks += owners[k].tasks;
        see_ending(fleet, p, owners, count, d);
    }
    f->dqds = dqds;
    int64_t paused_at = f->limit.paused_until_at;
    f->limit = fleet_limit_of(fleet, tag, paused_at, f->limit.reason);
    if (f->limit.paused_until_at > paused_at) { /* the limit itself is paused */
        f->paused_as = f->limit.name;
        f->paused_by = NULL;
    }
    f->tasks = 0;
    for (size_t k = 0; k < count; k++)
        f->tasks += owners[k].tasks;
    f->under = f->limit.running ? fleet_running(fleet, tag, f->tasks) : f->tasks;
    return dqds;
}

/* ---- locks of other sessions */

#define LATE_MS (2 * WHEN_SECOND)
/* Claims lock a row for a moment, perhaps at an interval: a lock counts if it is there each time,
 * after pauses that grow by this much. */
#define LOCK_TRIES 8
#define LOCK_PAUSE_MS 11

static void find_locks(struct db *db, struct why_facts *f)
{
    const char *limit = f->limit.name ? f->limit.name : f->tag;
    struct err err;

    f->locked = true;
    f->limit_locked = f->status == TASK_PENDING && (f->limit.running || f->limit.rate.count);
    for (int i = 0; i < LOCK_TRIES && (f->locked || f->limit_locked); i++) {
        nanosleep(&(struct timespec){.tv_nsec = i * LOCK_PAUSE_MS * 1000000L}, NULL);
        f->locked = f->locked && why_store_locked(db, f->id, &err) == 1;
        f->limit_locked = f->limit_locked && why_store_limit_locked(db, limit, &err) == 1;
    }
}

static bool may_be_locked(const struct why_facts *f, const struct why *w)
{
    return why_lines_find(w, WHY_UNRECORDED) || (why_is_open(w) && f->late_ms >= LATE_MS);
}

void why_facts_lock(struct db *db, struct why_facts *f, struct why *w)
{
    struct lock_holder holder = {0};
    struct err err;
    if (!may_be_locked(f, w))
        return;
    if (!f->id && why_store_first(db, f->tag, &f->id, &err) != 1)
        return;
    find_locks(db, f);
    if (!f->locked && !f->limit_locked)
        return;
    (void)!lock_store_holder(db, f->locked ? f->id : 0, &holder, &err);
    MEM_LOCAL char *text = lock_store_describe(&holder), *end = lock_store_remedy(&holder);
    f->holder = text;
    f->holder_end = end;
    why_lines_done(w);
    why_decide(f, w);
    f->holder = f->holder_end = NULL;
}
