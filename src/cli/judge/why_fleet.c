/*
 * why_fleet.c - see why_fleet.h.
 */
#include "cli/judge/why_fleet.h"

#include "base/mem.h"

#include <string.h>
#include <sys/param.h>

bool why_fleet_is_owner(const struct poller_info *dqd, const unsigned char *token)
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

struct why_dqd *why_fleet_see(const struct fleet *fleet, const char *tag,
                              const struct why_owner *owners, size_t count, struct why_facts *f)
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
            if (why_fleet_is_owner(p, owners[k].token))
                d->tasks += owners[k].tasks;
    }
    f->dqds = dqds;
    f->limit.running = fleet_limit(fleet, tag, NULL);
    f->tasks = 0;
    for (size_t k = 0; k < count; k++)
        f->tasks += owners[k].tasks;
    return dqds;
}
