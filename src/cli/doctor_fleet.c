/*
 * doctor_fleet.c - see doctor_fleet.h.
 */
#include "cli/doctor_fleet.h"

#include "base/when.h"
#include "cli/fleet.h"
#include "store/peek_store.h"

#include <inttypes.h>

#define NAMED 3 /* tags in one message */

void doctor_fleet_tags(struct doctor *d, struct doctor_finding *f)
{
    struct fleet fleet;
    struct peek peek = {0};
    struct buf names = BUF_INIT;
    struct err err;
    size_t due = 0, unserved = 0, unknown = 0;

    int rc = fleet_load(d->c->db, &fleet, &err);
    if (rc == 0)
        rc = peek_store_all(d->c->db, 0, &peek, &err);
    if (rc < 0)
        doctor_find_failed(f, &err);
    for (size_t i = 0; rc == 0 && i < peek.count; i++) {
        if (peek.tags[i].next_at > peek.now_us / 1000)
            continue;
        enum fleet_serves serves = fleet_serves(&fleet, peek.tags[i].tag, NULL);
        due++;
        unknown += serves == FLEET_SERVES_UNKNOWN;
        if (serves == FLEET_SERVES_NOT && unserved++ < NAMED)
            buf_printf(&names, "%s%s", names.len ? ", " : "", peek.tags[i].tag);
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
    buf_done(&names);
    peek_store_done(&peek);
    fleet_done(&fleet);
}

void doctor_fleet_starts(struct doctor *d, struct doctor_finding *f)
{
    struct fleet fleet;
    struct err err;
    char left[WHEN_TEXT_SIZE];
    size_t named = 0, silent = 0;

    int rc = fleet_load(d->c->db, &fleet, &err);
    if (rc < 0)
        doctor_find_failed(f, &err);
    for (size_t k = 0; k < fleet.count; k++)
        silent += fleet.dqds[k].alive && !fleet.dqds[k].handlers_known;
    if (rc == 0 && (!fleet.alive || silent))
        doctor_find(f, DOCTOR_UNKNOWN,
                    fleet.alive ? "not known of %zu dqds, which have not recorded it"
                                : "not known: no dqd is alive",
                    silent);
    for (size_t i = 0; i < fleet.rest_count; i++) {
        const struct handler_rest *rest = &fleet.rests[i];
        for (size_t k = 0; k < fleet.count && named < NAMED; k++) {
            const struct poller_info *dqd = &fleet.dqds[k];
            if (!dqd->alive || fleet_rest(&fleet, dqd, rest->tag) != rest)
                continue;
            named++;
            doctor_find(f, DOCTOR_BAD, "%s cannot be started on %s: %s; tried again in %s",
                        rest->tag, dqd->host, rest->error ? rest->error : "not known why",
                        when_format_rough(left, rest->for_ms > 0 ? rest->for_ms : 0));
        }
    }
    doctor_find(f, DOCTOR_OK, "no tag rests because its handler cannot be started");
    fleet_done(&fleet);
}
