/*
 * doctor_queue.c - see doctor_queue.h.
 */
#include "cli/judge/doctor.h"

#include "base/mem.h"
#include "base/when.h"
#include "cli/judge/fleet.h"
#include "cli/judge/schedules.h"
#include "store/ask/health_store.h"
#include "store/ask/lock_store.h"
#include "store/ask/why_store.h"
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

int doctor_queue_schema(struct doctor *d, struct doctor_finding *f, struct err *err)
{
    BUF_LOCAL struct buf mend = BUF_INIT;

    if (schema_check(d->c->db, err) < 0)
        return err->code;
    d->stage = DOCTOR_TABLES;
    if (schema_verify(d->c->db, schema_latest, &mend, err) < 0)
        doctor_find_failed(f, err);
    if (mend.len)
        doctor_find(f, DOCTOR_BAD, "this mends it: %.*s", (int)mend.len - 2, mend.data);
    doctor_find(f, DOCTOR_OK, "version %d, tables as dq makes them", schema_latest);
    return 0;
}

int doctor_queue_procedures(struct doctor *d, struct doctor_finding *f, struct err *err)
{
    struct routines_state s;

    if (routines_check(d->c->db, &s, err) < 0)
        return err->code;
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
    return 0;
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

int doctor_queue_plans(struct doctor *d, struct doctor_finding *f, struct err *err)
{
    static const struct peek_floor none[TASK_LEVELS] = {{0}};
    struct hot look = {"looking for due tags", true, PLAN_ROWS},
               next = {"looking for the next task of a tag", false, PLAN_ROWS},
               find = {"finding tasks to claim", false, PLAN_ROWS};
    LOCAL_BY(peek_store_done) struct peek peek = {0};
    BUF_LOCAL struct buf sql = BUF_INIT;

    if (peek_store_all(d->c->db, 0, &peek, err) < 0)
        return err_prefix(err, "%s", look.what);
    const char *tag = peek.count ? peek.tags[0].tag : "";
    look.rows_most = MAX(PLAN_ROWS, ROWS_A_TAG * peek.count);
    peek_store_put_all(&sql, 0);
    bool good = check_plan(d, &look, &sql, f);
    buf_reset(&sql);
    peek_store_put_next(&sql, tag, none);
    good = check_plan(d, &next, &sql, f) && good;
    buf_reset(&sql);
    claim_find_put(&sql, tag, CLAIM_ROWS);
    good = check_plan(d, &find, &sql, f) && good;
    doctor_find(f, DOCTOR_OK,
                good ? "the statements of dqd use the index due, and sort nothing"
                     : "the statements of dqd read few rows");
    return 0;
}

int doctor_queue_rows(struct doctor *d, struct doctor_finding *f, struct err *err)
{
    struct health_rows odd;

    if (health_store_rows(d->c->db, &odd, err) < 0)
        return err->code;
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
    return 0;
}

#define SILENT_NAMED 3

int doctor_queue_dqds(struct doctor *d, struct doctor_finding *f, struct err *err)
{
    LOCAL_BY(fleet_done) struct fleet fleet = {0};
    size_t other = 0, named = 0;
    char ago[WHEN_TEXT_SIZE];
    const char *odd = NULL;

    if (fleet_load_dqds(d->c->db, &fleet, err) < 0)
        return err->code;
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
    if (fleet.ended)
        doctor_find(f, DOCTOR_BAD, "none is alive; the last ended on %s, %s ago: start dqd",
                    fleet.ended, when_format_rough(ago, fleet.ended_ms));
    else if (!last)
        doctor_find(f, DOCTOR_BAD, "none is alive, and none is known from the last day: start dqd");
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
    return 0;
}

/* ---- what they serve */

#define TAGS_NAMED 3 /* tags in one message */
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

/* Whether a row before it has the tag, at another level, and is due by then. */
static bool was_seen(const struct peek *p, size_t at, int64_t due_by)
{
    bool seen = false;

    for (size_t i = 0; i < at && p->tags[at].level != TASK_NORMAL && !seen; i++)
        seen = p->tags[i].next_at <= due_by && strcmp(p->tags[i].tag, p->tags[at].tag) == 0;
    return seen;
}

int doctor_queue_tags(struct doctor *d, struct doctor_finding *f, struct err *err)
{
    LOCAL_BY(fleet_done) struct fleet fleet = {0};
    LOCAL_BY(peek_store_done) struct peek peek = {0};
    BUF_LOCAL struct buf names = BUF_INIT;
    size_t due = 0, unserved = 0, unknown = 0, looked = 0, differing = 0;

    if (fleet_load(d->c->db, &fleet, err) < 0 || peek_store_all(d->c->db, 0, &peek, err) < 0)
        return err->code;
    for (size_t i = 0; i < peek.count; i++) {
        MEM_LOCAL char *differ = NULL;
        if (!was_seen(&peek, i, INT64_MAX))
            fleet_limit(&fleet, peek.tags[i].tag, &differ);
        if (differ && differing++ < TAGS_NAMED)
            doctor_find(f, DOCTOR_WARN, "%s; give it one value in all handlers files", differ);
        if (peek.tags[i].next_at > peek.now_us / 1000 || was_seen(&peek, i, peek.now_us / 1000))
            continue;
        enum fleet_serves serves = fleet_serves(&fleet, peek.tags[i].tag, NULL);
        due++;
        unknown += serves == FLEET_SERVES_UNKNOWN;
        if (serves == FLEET_SERVES_NOT && unserved++ < TAGS_NAMED)
            buf_printf(&names, "%s%s", names.len ? ", " : "", peek.tags[i].tag);
        int64_t late_ms = peek.now_us / 1000 - peek.tags[i].next_at;
        if (late_ms >= LATE_MS && looked++ < LATE_LOOKED)
            check_lock(d, peek.tags[i].tag, late_ms, f);
    }
    if (unserved)
        doctor_find(
            f, DOCTOR_BAD,
            "no dqd serves %zu of %zu tags with due tasks: %s%s; add a handler, or: dq cancel -t TAG",
            unserved, due, names.data, unserved > TAGS_NAMED ? " and others" : "");
    if (unknown)
        doctor_find(f, DOCTOR_UNKNOWN,
                    "%zu of %zu tags with due tasks: not known whether they are served, as %s",
                    unknown, due,
                    fleet.alive ? "a dqd has not recorded what it serves" : "no dqd is alive");
    doctor_find(f, DOCTOR_OK, "%zu with due tasks, each is served", due);
    return 0;
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

int doctor_queue_starts(struct doctor *d, struct doctor_finding *f, struct err *err)
{
    LOCAL_BY(fleet_done) struct fleet fleet = {0};
    char left[WHEN_TEXT_SIZE];
    const struct handler_rest *said[TAGS_NAMED] = {NULL};
    size_t kept = 0, named = 0, silent = 0, count;

    if (fleet_load(d->c->db, &fleet, err) < 0)
        return err->code;
    for (size_t k = 0; k < fleet.count; k++)
        silent += fleet.dqds[k].alive && fleet.dqds[k].handlers &&
                  !fleet_handlers(&fleet, &fleet.dqds[k], &count);
    if (!fleet.alive || silent)
        doctor_find(f, DOCTOR_UNKNOWN,
                    fleet.alive ? "not known of %zu dqds, which have not recorded it"
                                : "not known: no dqd is alive",
                    silent);
    for (size_t i = 0; i < fleet.rest_count; i++) {
        const struct handler_rest *rest = &fleet.rests[i];
        for (size_t k = 0; k < fleet.count; k++) {
            const struct poller_info *dqd = &fleet.dqds[k];
            if (rest->reason == HANDLER_KEPT && rest->for_ms > 0 &&
                !memcmp(rest->token, dqd->token, sizeof rest->token) && kept++ < TAGS_NAMED)
                doctor_find(f, DOCTOR_OK, "processes that %s keeps on %s: %s", rest->tag, dqd->host,
                            rest->error);
            if (named == TAGS_NAMED || !dqd->alive || fleet_rest(&fleet, dqd, rest->tag) != rest ||
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
    return 0;
}

/* Of those that compute slots. */
static void check_time_zones(const struct fleet *fleet, const char *newest,
                             struct doctor_finding *f)
{
    for (size_t i = 0; i < fleet->count; i++) {
        const struct poller_info *p = &fleet->dqds[i];
        if (p->alive && *p->tzdata && strcmp(p->tzdata, newest) < 0)
            doctor_find(
                f, DOCTOR_WARN,
                "%s has the time zones of %s, another host those of %s: update tzdata there",
                p->host, p->tzdata, newest);
    }
}

int doctor_queue_schedules(struct doctor *d, struct doctor_finding *f, struct err *err)
{
    LOCAL_BY(fleet_done) struct fleet fleet = {0};
    const char *newest = timetable_zone_version();
    struct schedule *all;
    size_t count, named = 0;
    int64_t now_at;

    if (fleet_load(d->c->db, &fleet, err) < 0 ||
        schedule_store_list(d->c->db, &(struct schedule_filter){0}, &all, &count, &now_at, err) < 0)
        return err->code;
    for (size_t i = 0; i < count; i++) {
        BUF_LOCAL struct buf why = BUF_INIT;
        if (schedules_put_alarm(&why, &all[i], &fleet, now_at) && named++ < TAGS_NAMED)
            doctor_find(f, DOCTOR_WARN, "%s", why.data);
    }
    if (named > TAGS_NAMED)
        doctor_find(f, DOCTOR_WARN, "%zu more have an alarm: dq check --schedules '*'",
                    named - TAGS_NAMED);
    for (size_t i = 0; i < fleet.count; i++)
        if (fleet.dqds[i].alive && strcmp(fleet.dqds[i].tzdata, newest) > 0)
            newest = fleet.dqds[i].tzdata;
    if (count)
        check_time_zones(&fleet, newest, f);
    doctor_find(f, DOCTOR_OK, "%zu, none has an alarm", count);
    schedule_row_free(all, count);
    return 0;
}
