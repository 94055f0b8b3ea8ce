/*
 * doctor_fleet.c - see doctor_fleet.h.
 */
#include "cli/judge/doctor_fleet.h"

#include "base/mem.h"
#include "base/when.h"
#include "cli/judge/fleet.h"
#include "store/ask/lock_store.h"
#include "store/ask/why_store.h"
#include "store/work/peek_store.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define NAMED 3 /* tags in one message */
/* So many tags with tasks that are later than this are looked at for a lock: a claim has had its
 * chance. */
#define LATE_LOOKED 10
#define LATE_MS (2 * WHEN_SECOND)

/* Whether another session has locked the first task of a tag; says who. */
static void check_lock(struct doctor *d, const char *tag, int64_t late_ms, struct doctor_finding *f)
{
    struct lock_holder holder = {0};
    char late[WHEN_TEXT_SIZE];
    struct err err;
    uint64_t id;

    if (why_store_first(d->c->db, tag, &id, &err) != 1 || why_store_locked(d->c->db, id, &err) != 1)
        return;
    int rc = lock_store_holder(d->c->db, id, &holder, &err);
    MEM_LOCAL char *who = lock_store_describe(&holder), *end = lock_store_remedy(&holder);
    doctor_find(f, DOCTOR_BAD, "task %" PRIu64 " of %s is %s late: another session has locked it",
                id, tag, when_format_rough(late, late_ms));
    if (who)
        buf_printf(&f->text, ": %s: %s", who, end);
    else if (rc == ERR_DENIED)
        buf_str(&f->text, "; an account with the privilege PROCESS sees which one");
}

void doctor_fleet_tags(struct doctor *d, struct doctor_finding *f)
{
    LOCAL_BY(fleet_done) struct fleet fleet = {0};
    LOCAL_BY(peek_store_done) struct peek peek = {0};
    BUF_LOCAL struct buf names = BUF_INIT;
    struct err err;
    size_t due = 0, unserved = 0, unknown = 0, looked = 0, differing = 0;

    int rc = fleet_load(d->c->db, &fleet, &err);
    if (rc == 0)
        rc = peek_store_all(d->c->db, 0, &peek, &err);
    if (rc < 0)
        doctor_find_failed(f, &err);
    for (size_t i = 0; rc == 0 && i < peek.count; i++) {
        char *differ;
        fleet_limit(&fleet, peek.tags[i].tag, &differ);
        if (differ && differing++ < NAMED)
            doctor_find(f, DOCTOR_WARN, "%s; give it one value in all handlers files", differ);
        free(differ);
        if (peek.tags[i].next_at > peek.now_us / 1000)
            continue;
        enum fleet_serves serves = fleet_serves(&fleet, peek.tags[i].tag, NULL);
        due++;
        unknown += serves == FLEET_SERVES_UNKNOWN;
        if (serves == FLEET_SERVES_NOT && unserved++ < NAMED)
            buf_printf(&names, "%s%s", names.len ? ", " : "", peek.tags[i].tag);
        int64_t late_ms = peek.now_us / 1000 - peek.tags[i].next_at;
        if (late_ms >= LATE_MS && looked++ < LATE_LOOKED)
            check_lock(d, peek.tags[i].tag, late_ms, f);
    }
    if (unserved)
        doctor_find(
            f, DOCTOR_BAD,
            "no dqd serves %zu of %zu tags with due tasks: %s%s; add a handler, or: dq cancel -t TAG",
            unserved, due, names.data, unserved > NAMED ? " and others" : "");
    if (unknown)
        doctor_find(f, DOCTOR_UNKNOWN,
                    "%zu of %zu tags with due tasks: not known whether they are served, as %s",
                    unknown, due,
                    fleet.alive ? "a dqd has not recorded what it serves" : "no dqd is alive");
    doctor_find(f, DOCTOR_OK, "%zu with due tasks, each is served", due);
}

/* Of dqds of one server: the others say the same. */
static bool is_said(const struct handler_rest *rest, const struct handler_rest *const *said,
                    size_t count)
{
    bool found = false;
    for (size_t i = 0; i < count && rest->reason != HANDLER_RESTS; i++)
        found |= said[i] && said[i]->reason == rest->reason && strcmp(said[i]->tag, rest->tag) == 0;
    return found;
}

void doctor_fleet_starts(struct doctor *d, struct doctor_finding *f)
{
    LOCAL_BY(fleet_done) struct fleet fleet = {0};
    struct err err;
    char left[WHEN_TEXT_SIZE];
    const struct handler_rest *said[NAMED] = {NULL};
    size_t named = 0, silent = 0, count;

    int rc = fleet_load(d->c->db, &fleet, &err);
    if (rc < 0)
        doctor_find_failed(f, &err);
    for (size_t k = 0; k < fleet.count; k++)
        silent += fleet.dqds[k].alive && fleet.dqds[k].handlers &&
                  !fleet_handlers(&fleet, &fleet.dqds[k], &count);
    if (rc == 0 && (!fleet.alive || silent))
        doctor_find(f, DOCTOR_UNKNOWN,
                    fleet.alive ? "not known of %zu dqds, which have not recorded it"
                                : "not known: no dqd is alive",
                    silent);
    for (size_t i = 0; i < fleet.rest_count; i++) {
        const struct handler_rest *rest = &fleet.rests[i];
        for (size_t k = 0; k < fleet.count && named < NAMED; k++) {
            const struct poller_info *dqd = &fleet.dqds[k];
            if (!dqd->alive || fleet_rest(&fleet, dqd, rest->tag) != rest ||
                is_said(rest, said, named))
                continue;
            said[named++] = rest;
            if (rest->reason != HANDLER_RESTS) {
                doctor_find(f, rest->reason == HANDLER_SLOW ? DOCTOR_WARN : DOCTOR_BAD, "%s %s: %s",
                            rest->tag, fleet_reasons[rest->reason], rest->error);
                break;
            }
            doctor_find(f, DOCTOR_BAD, "%s cannot be started on %s: %s; tried again in %s",
                        rest->tag, dqd->host, rest->error,
                        when_format_rough(left, rest->for_ms > 0 ? rest->for_ms : 0));
        }
    }
    doctor_find(f, DOCTOR_OK, "no tag rests, is refused or slow");
}
