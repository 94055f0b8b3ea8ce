/*
 * schedule_store.c - see schedule_store.h. Invariant: the next slot of a schedule never becomes one
 * that has been decided.
 */
#include "store/ask/schedule_store.h"
#include "store/db/columns.h"
#include "store/row/field.h"
#include "store/row/sql.h"
#include "store/work/slot_record.h"

#include <stdlib.h>
#include <sys/param.h>

#define CHANGE_TRIES 3 /* a dqd may decide slots of these schedules at the same time */

int schedule_store_list(struct db *db, const struct schedule_filter *f, struct schedule **ret,
                        size_t *ret_count, int64_t *ret_now_at, struct err *err)
{
    struct schedule *all = NULL;
    BUF_LOCAL struct buf tail = BUF_INIT;
    size_t count = 0, kept = 0;
    int64_t now_at = 0;

    if (f->owner)
        sql_put(&tail, " WHERE c.owner = ?", SQL_TEXT(f->owner));
    buf_str(&tail, " ORDER BY c.name");
    if (f->most && !f->glob)
        buf_printf(&tail, " LIMIT %zu", f->most);
    int rc = db_now(db, &now_at, err);
    if (rc == 0)
        rc = schedule_row_list(db, tail.data, f->bodies, true, &all, &count, err);
    for (size_t i = 0; i < count; i++) {
        if ((!f->glob || task_tag_glob(f->glob, all[i].name)) && (!f->most || kept < f->most)) {
            struct schedule swap = all[kept];
            all[kept++] = all[i];
            all[i] = swap;
        }
    }
    for (size_t i = kept; i < count; i++)
        schedule_row_done(&all[i]);
    if (rc < 0)
        return rc;
    *ret = all;
    *ret_count = kept;
    *ret_now_at = now_at;
    return 0;
}

/* Reads one, and locks it if that is wanted; then without its runs. 1, or 0 if there is none. */
static int read_one(struct db *db, const char *name, bool body, bool lock, struct schedule *ret,
                    struct err *err)
{
    struct schedule *rows = NULL;
    BUF_LOCAL struct buf tail = BUF_INIT;
    size_t count = 0;

    sql_put(&tail, " WHERE c.name = ??", SQL_TEXT(name), SQL_PART(lock ? " FOR UPDATE" : ""));
    int rc = schedule_row_list(db, tail.data, body, !lock, &rows, &count, err);
    if (count)
        *ret = rows[0];
    free(rows);
    return rc < 0 ? rc : count > 0;
}

int schedule_store_find(struct db *db, const char *name, bool body, struct schedule *ret,
                        struct err *err)
{
    int rc = read_one(db, name, body, false, ret, err);

    return rc == 0 ? err_set(err, ERR_NOT_FOUND,
                             "schedule %s does not exist; dq schedule lists them", name)
                   : MIN(rc, 0);
}

/* The first slot behind now, and behind all that have been decided: the server's clock may have
 * been set back. */
static int first_slot(struct db *db, const struct schedule *s, const struct timetable *t,
                      int64_t now_at, int64_t *ret_at, struct err *err)
{
    int64_t decided_at = TASK_TIME_NONE;

    if (s->kind == TIMETABLE_GAP) {
        *ret_at = MAX(now_at, s->from_at);
        return 0;
    }
    int rc = sql_read(db, COLUMNS_ONE, sql_take_time, &decided_at, err,
                      "SELECT " AHEAD_STORE_DECIDED("?"), SQL_TEXT(s->name));
    if (!timetable_next(t, MAX(now_at, decided_at), ret_at, NULL))
        *ret_at = TASK_TIME_NONE;
    return rc;
}

static void put_next(struct buf *sql, const struct timetable *t, int64_t next_at)
{
    sql_put(sql, "next_slot = ?, zone_version = ?, zone_digest = ?, ", SQL_TIME(next_at),
            SQL_TEXT(timetable_zone_version()), SQL_ID(timetable_zone_digest(t)));
}

static int write_set(struct db *db, const struct schedule_change *c, const struct timetable *t,
                     const char *actor, struct err *err)
{
    struct db_statement st = DB_STATEMENT_INIT;
    uint64_t rows;

    buf_str(&st.sql, c->existed ? "UPDATE dq_schedule SET " : "INSERT INTO dq_schedule SET ");
    for (unsigned i = c->existed ? 1 : 0; i < SCHEDULE_ROW_SET_END; i++) {
        buf_printf(&st.sql, "%s = ", schedule_row_columns[i].sql);
        if (i == SCHEDULE_ROW_body)
            db_statement_put(&st, c->set->body ? c->set->body : "", c->set->body_size);
        else
            field_put_values(&st, &schedule_row_columns[i], 1, c->set);
        buf_str(&st.sql, ", ");
    }
    if (!c->existed || c->changed & SCHEDULE_ROW_TIMING)
        put_next(&st.sql, t, c->next_at);
    if (!c->existed)
        buf_str(&st.sql, "create_time = UTC_TIMESTAMP(3), ");
    sql_put(&st.sql, "version = version + 1, update_time = UTC_TIMESTAMP(3), actor = ?",
            SQL_TEXT(actor));
    if (c->existed)
        sql_put(&st.sql, " WHERE name = ?", SQL_TEXT(c->set->name));
    int rc = db_statement_exec(db, &st, &rows, err);
    db_statement_done(&st);
    return rc;
}

static int set_one(struct db *db, struct schedule_change *c, const char *actor, int64_t now_at,
                   struct err *err)
{
    struct timetable *t = schedule_row_timetable(c->set, err);

    if (!t)
        return ERR_DATA;
    c->changed = c->existed ? schedule_row_differs(&c->old, c->set) : UINT_MAX;
    c->next_at = c->old.next_at;
    int rc = !c->changed || !(c->changed & SCHEDULE_ROW_TIMING)
                 ? 0
                 : first_slot(db, c->set, t, now_at, &c->next_at, err);
    if (rc == 0 && c->changed)
        rc = write_set(db, c, t, actor, err);
    timetable_free(t);
    return rc;
}

static int delete_one(struct db *db, struct schedule_change *c, struct err *err)
{
    c->changed = c->existed ? UINT_MAX : 0;
    return c->existed ? sql_exec(db, NULL, err, "DELETE FROM dq_schedule WHERE name = ?",
                                 SQL_TEXT(c->name))
                      : 0;
}

static int change_one(struct db *db, struct schedule_change *c, const char *actor, int64_t now_at,
                      struct err *err)
{
    const char *name = c->set ? c->set->name : c->name;
    int rc = read_one(db, name, true, true, &c->old, err);

    if (rc < 0)
        return rc;
    c->existed = rc > 0;
    if (c->set && c->existed && c->only_new)
        rc = err_set(err, ERR_DUPLICATE, "it exists already; without --new, it is changed");
    else
        rc = c->set ? set_one(db, c, actor, now_at, err) : delete_one(db, c, err);
    if (rc == ERR_DUPLICATE && !c->only_new) /* another session has just added it */
        rc = err->code = ERR_TRANSIENT;
    return rc < 0 ? err_prefix(err, "schedule %s", name) : 0;
}

void schedule_store_change_done(struct schedule_change *changes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        schedule_row_done(&changes[i].old);
        changes[i].old = (struct schedule){0};
    }
}

/* Whether another session has given the owner a schedule: an insertion that is not committed is
 * waited for. */
static int check_all_of(struct db *db, const char *owner, const struct schedule_change *changes,
                        size_t count, struct err *err)
{
    uint64_t has = 0, sets = 0;

    for (size_t i = 0; i < count; i++)
        sets += changes[i].set ? 1 : 0;
    int rc =
        sql_first(db, COLUMNS_ONE, sql_take_u64, &has, err,
                  "SELECT COUNT(*) FROM dq_schedule WHERE owner = ? FOR UPDATE", SQL_TEXT(owner));
    return rc < 0        ? rc
           : has == sets ? 0
                         : err_set(err, ERR_STATE, "the schedules of %s have just changed", owner);
}

static int change_all(struct db *db, struct schedule_change *changes, size_t count,
                      const char *all_of, const struct event_act *act, size_t *ret_bad,
                      struct err *err)
{
    unsigned changed = 0;
    int64_t now_at = 0;
    int rc = db_begin(db, err);

    if (rc < 0)
        return rc;
    rc = db_now(db, &now_at, err);
    for (size_t i = 0; rc == 0 && i < count; i++) {
        rc = change_one(db, &changes[i], act->actor, now_at, err);
        changed |= changes[i].changed;
        if (rc == ERR_DATA || rc == ERR_DUPLICATE)
            *ret_bad = i;
    }
    if (rc == 0 && all_of)
        rc = check_all_of(db, all_of, changes, count, err);
    if (rc == 0 && changed)
        rc = event_store_add(db, act, NULL, 0, err);
    const bool sent = rc == 0;
    rc = db_end(db, rc, err);
    if (sent && rc == ERR_LOST)
        err_set(err, rc, "%s; it is not known whether that was stored: running it again is safe",
                err->text);
    return rc;
}

int schedule_store_change(struct db *db, struct schedule_change *changes, size_t count,
                          const char *all_of, const struct event_act *act, size_t *ret_bad,
                          struct err *err)
{
    int rc = ERR_TRANSIENT;

    for (int tries = 0; rc == ERR_TRANSIENT && tries < CHANGE_TRIES; tries++) {
        schedule_store_change_done(changes, count);
        *ret_bad = SIZE_MAX;
        rc = change_all(db, changes, count, all_of, act, ret_bad, err);
    }
    return rc;
}

static int write_pause(struct db *db, const char *name, const char *reason, const char *actor,
                       struct err *err)
{
    return sql_exec(db, NULL, err,
                    "UPDATE dq_schedule SET paused_time = UTC_TIMESTAMP(3), paused_by = ?,"
                    " pause_reason = ?, version = version + 1 WHERE name = ?",
                    SQL_TEXT(actor), SQL_TEXT(reason), SQL_TEXT(name));
}

/* The slots of the pause that no dqd has decided. */
static int skip_paused(struct db *db, const struct schedule *s, const struct timetable *t,
                       int64_t now_at, int64_t *next_at, struct err *err)
{
    int rc = 0;

    if (s->kind == TIMETABLE_GAP)
        *next_at = now_at;
    while (rc == 0 && s->kind != TIMETABLE_GAP && *next_at != TASK_TIME_NONE &&
           *next_at <= now_at) {
        struct slot_plan p;

        slot_decide(&(struct slot_ask){.timetable = t,
                                       .kind = (enum timetable_kind)s->kind,
                                       .paused = true,
                                       .next_at = *next_at,
                                       .now_at = now_at},
                    &p);
        for (size_t i = 0; rc == 0 && i < p.count; i++)
            rc = slot_record_add(db, &(struct slot_record){s, &p.acts[i]}, 1, NULL,
                                 &(struct slot_added){0}, err);
        *next_at = p.next_at;
        slot_plan_done(&p);
    }
    return rc;
}

static int write_resume(struct db *db, const struct schedule *s, struct err *err)
{
    struct timetable *t = schedule_row_timetable(s, err);
    BUF_LOCAL struct buf sql = BUF_INIT;
    int64_t now_at = 0, next_at = s->next_at;

    if (!t)
        return ERR_DATA;
    int rc = db_now(db, &now_at, err);
    if (rc == 0 && next_at != TASK_TIME_NONE && next_at <= now_at)
        rc = skip_paused(db, s, t, now_at, &next_at, err);
    buf_str(&sql, "UPDATE dq_schedule SET ");
    if (next_at != s->next_at) /* else other time zones than those of this host may have it */
        put_next(&sql, t, next_at);
    sql_put(&sql,
            "paused_time = NULL, paused_by = NULL, pause_reason = NULL,"
            " update_time = UTC_TIMESTAMP(3), version = version + 1 WHERE name = ?",
            SQL_TEXT(s->name));
    if (rc == 0)
        rc = db_exec(db, &sql, NULL, err);
    timetable_free(t);
    return rc;
}

int schedule_store_pause(struct db *db, const char *name, bool pause, const char *reason,
                         const struct event_act *act, struct err *err)
{
    struct schedule s = {0};
    int rc = db_begin(db, err);
    bool changes = false;

    if (rc < 0)
        return rc;
    rc = read_one(db, name, true, true, &s, err);
    if (rc == 0)
        rc = err_set(err, ERR_NOT_FOUND, "schedule %s does not exist", name);
    if (rc > 0) {
        changes = (s.paused_at == TASK_TIME_NONE) == pause;
        rc = !changes ? 0
             : pause  ? write_pause(db, name, reason, act->actor, err)
                      : write_resume(db, &s, err);
    }
    if (rc == 0 && changes)
        rc = event_store_add(db, act, NULL, 0, err);
    rc = db_end(db, rc, err);
    schedule_row_done(&s);
    return rc < 0 ? rc : changes;
}

#define SLOT_ROW(...) COLUMN_UNSHOWN(schedule_slot, __VA_ARGS__),
static const struct column slot_columns[] = {SCHEDULE_SLOTS_COLUMNS(SLOT_ROW)};
static const struct field_table slot_table = FIELD_TABLE(schedule_slot, slot_columns);

int schedule_store_slots(struct db *db, const char *name, size_t most, struct schedule_slot **ret,
                         size_t *ret_count, struct err *err)
{
    return field_list(
        db, &slot_table, ret, ret_count, err,
        "FROM dq_slot s FORCE INDEX (PRIMARY) LEFT JOIN dq_task t FORCE INDEX (PRIMARY) ON t.id = " SCHEDULE_ROW_TASK(
            "s.name", "s.slot") " WHERE s.name = ? ORDER BY s.slot DESC LIMIT ?",
        SQL_TEXT(name), SQL_ID(most));
}

void schedule_store_slots_free(struct schedule_slot *slots, size_t count)
{
    field_free(&slot_table, slots, count);
}
