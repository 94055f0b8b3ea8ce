/*
 * doctor_queue.c - see doctor_queue.h.
 */
#include "cli/judge/doctor_queue.h"

#include "base/mem.h"
#include "base/when.h"
#include "cli/judge/fleet.h"
#include "store/ask/health_store.h"
#include "store/fleet/poller_store.h"
#include "store/schema/routines.h"
#include "store/schema/schema.h"
#include "store/schema/schema_verify.h"
#include "store/work/claim_find.h"
#include "store/work/peek_store.h"

#include <inttypes.h>
#include <string.h>
#include <sys/param.h>

#define PLAN_ROWS 10000 /* a statement that reads more of them each time is slow */
#define ROWS_A_TAG 4    /* but of each of very many tags it may read some */
#define CLAIM_ROWS 500

void doctor_queue_schema(struct doctor *d, struct doctor_finding *f)
{
    BUF_LOCAL struct buf mend = BUF_INIT;
    struct err err;

    if (schema_check(d->c->db, &err) < 0)
        doctor_find_failed(f, &err);
    else
        d->stage = DOCTOR_TABLES;
    if (d->stage == DOCTOR_TABLES && schema_verify(d->c->db, schema_latest, &mend, &err) < 0)
        doctor_find_failed(f, &err);
    if (mend.len)
        doctor_find(f, DOCTOR_BAD, "this mends it: %.*s", (int)mend.len - 2, mend.data);
    doctor_find(f, DOCTOR_OK, "version %d, tables as dq makes them", schema_latest);
}

void doctor_queue_procedures(struct doctor *d, struct doctor_finding *f)
{
    struct routines_state s;
    struct err err;

    if (routines_check(d->c->db, &s, &err) < 0) {
        doctor_find_failed(f, &err);
        return;
    }
    if (s.foreign)
        doctor_find(f, DOCTOR_WARN, "%u of that name are not dq's: rename them", s.foreign);
    if (s.old)
        doctor_find(f, DOCTOR_WARN, "%u are of another release: run dq init", s.old);
    if (s.missing && s.current)
        doctor_find(f, DOCTOR_WARN, "%u are missing: run dq init", s.missing);
    if (!s.visible)
        doctor_find(f, DOCTOR_UNKNOWN,
                    "none that this account can see: only producers in SQL need them");
    else if (!s.current)
        doctor_find(f, DOCTOR_OK, "there are none: only producers in SQL need them");
    else
        doctor_find(f, DOCTOR_OK, "%u for producers in SQL, current", s.current);
}

/* A statement of dqd that should use the index due, without sorting, and as a loose scan if it is
 * grouped. On a small table another plan may be as good. */
struct hot {
    const char *what;
    bool grouped;
    uint64_t rows_most;
};

/* Whether it does. */
static bool check_plan(struct doctor *d, const struct hot *hot, const struct buf *sql,
                       struct doctor_finding *f)
{
    struct health_plan p;
    struct err err;

    if (health_store_plan(d->c->db, sql, &p, &err) < 0) {
        (void)err_prefix(&err, "%s", hot->what);
        doctor_find_failed(f, &err);
        return false;
    }
    bool good = strcmp(p.key, "due") == 0 && !p.sorts && (!hot->grouped || p.loose);
    if (p.rows > hot->rows_most && !good && (hot->grouped || p.sorts))
        doctor_find(f, DOCTOR_WARN,
                    "%s reads about %" PRIu64 " rows%s; if this lasts, run: ANALYZE TABLE dq_task",
                    hot->what, p.rows, p.sorts ? " and sorts them" : "");
    return good;
}

void doctor_queue_plans(struct doctor *d, struct doctor_finding *f)
{
    static const struct peek_floor none = {0};
    struct hot look = {"looking for due tags", true, PLAN_ROWS},
               next = {"looking for the next task of a tag", false, PLAN_ROWS},
               find = {"finding tasks to claim", false, PLAN_ROWS};
    LOCAL_BY(peek_store_done) struct peek peek = {0};
    BUF_LOCAL struct buf sql = BUF_INIT;
    struct err err;

    if (peek_store_all(d->c->db, 0, &peek, &err) < 0) {
        (void)err_prefix(&err, "%s", look.what);
        doctor_find_failed(f, &err);
        return;
    }
    const char *tag = peek.count ? peek.tags[0].tag : "";
    look.rows_most = MAX(PLAN_ROWS, ROWS_A_TAG * peek.count);
    peek_store_put_all(&sql, 0);
    bool good = check_plan(d, &look, &sql, f);
    buf_reset(&sql);
    peek_store_put_next(&sql, tag, &none);
    good = check_plan(d, &next, &sql, f) && good;
    buf_reset(&sql);
    claim_find_put(&sql, tag, CLAIM_ROWS);
    good = check_plan(d, &find, &sql, f) && good;
    doctor_find(f, DOCTOR_OK,
                good ? "the statements of dqd use the index due, and sort nothing"
                     : "the statements of dqd read few rows");
}

void doctor_queue_rows(struct doctor *d, struct doctor_finding *f)
{
    struct health_rows odd;
    struct err err;

    if (health_store_rows(d->c->db, &odd, &err) < 0) {
        doctor_find_failed(f, &err);
        return;
    }
    if (odd.unkeyed)
        doctor_find(
            f, DOCTOR_BAD,
            "live is not 1 for %" PRIu64 " pending or running with a key: "
            "another task can have the same key: cancel duplicates; run: " HEALTH_MEND_UNKEYED,
            odd.unkeyed);
    if (odd.unknown)
        doctor_find(f, DOCTOR_WARN,
                    "%" PRIu64 " with a status that is none of dq's, which no dqd runs",
                    odd.unknown);
    if (odd.dateless)
        doctor_find(f, DOCTOR_WARN, "%" PRIu64 " pending, due before the year 1000: a zero time",
                    odd.dateless);
    if (f->verdict != DOCTOR_OK)
        doctor_find(f, DOCTOR_WARN, "one of them is task %" PRIu64, odd.example);
    doctor_find(f, DOCTOR_OK, "the newest %d are as dq writes them", HEALTH_ROWS);
}

#define SILENT_NAMED 3

void doctor_queue_dqds(struct doctor *d, struct doctor_finding *f)
{
    LOCAL_BY(fleet_done) struct fleet fleet = {0};
    size_t other = 0, named = 0;
    char ago[WHEN_TEXT_SIZE];
    const char *odd = NULL;
    struct err err;

    if (fleet_load_dqds(d->c->db, &fleet, &err) < 0) {
        doctor_find_failed(f, &err);
        return;
    }
    for (size_t i = 0; i < fleet.count; i++) {
        const struct poller_info *p = &fleet.dqds[i];
        bool same = strcmp(p->version, PACKAGE_VERSION) == 0;
        if (poller_store_is_silent(p) && named++ < SILENT_NAMED)
            doctor_find(f, DOCTOR_WARN,
                        "dqd %s/%" PRIu32 " is silent for %s: it was resident and did not end",
                        p->host, p->pid, when_format_rough(ago, p->silent_ms));
        other += p->alive && !same;
        odd = p->alive && !same ? p->version : odd;
    }
    const struct poller_info *last = fleet_last(&fleet);
    if (!last)
        doctor_find(f, DOCTOR_BAD, "none is alive, and none was in the last day: start dqd");
    else if (!fleet.alive)
        doctor_find(f, DOCTOR_BAD,
                    "none is alive; the last was %s/%" PRIu32 ", silent for %s: journalctl -u dqd",
                    last->host, last->pid, when_format_rough(ago, last->silent_ms));
    if (other)
        doctor_find(f, DOCTOR_WARN,
                    "%zu of %zu are of another version (%s; this is %s): see doc/upgrading", other,
                    fleet.alive, odd, PACKAGE_VERSION);
    if (fleet.silent > SILENT_NAMED)
        doctor_find(f, DOCTOR_WARN, "%zu more dqds are silent", fleet.silent - SILENT_NAMED);
    if (fleet.between)
        doctor_find(f, DOCTOR_OK, "%zu alive, %zu between passes, of version %s", fleet.alive,
                    fleet.between, PACKAGE_VERSION);
    else
        doctor_find(f, DOCTOR_OK, "%zu alive, of version %s", fleet.alive, PACKAGE_VERSION);
}
