/*
 * schedule_row.h - a schedule, and a slot of one, as their rows in dq_schedule and dq_slot have
 * them. schedule_store.h in store/ask reads and changes them for people.
 */
#ifndef DQ_STORE_FLEET_SCHEDULE_ROW_H
#define DQ_STORE_FLEET_SCHEDULE_ROW_H

#include "base/column.h"
#include "base/slot.h"
#include "base/task.h"
#include "base/timetable.h"
#include "store/db/db.h"
#include "store/fleet/ahead_store.h"
#include "store/row/task_new.h"
#include "store/row/sql.h"

#define SCHEDULE_ROW_BODY_MOST 65535 /* bytes */

/* Texts are heap memory. Instants: TASK_TIME_NONE if there is none. */
struct schedule {
    /* what dq schedule set says: SCHEDULE_ROW_SET */
    char *name;
    char *owner; /* of dq schedule apply; NULL: none */
    char *tag;
    void *body; /* NULL: not read */
    size_t body_size;
    int kind;         /* enum timetable_kind */
    char *expression; /* as struct timetable_spec has it */
    char *zone;
    int64_t from_at, to_at;
    int64_t spread_ms;
    int catch_up;           /* enum slot_catch_up */
    int64_t within_ms;      /* of catch_up; 0: latest has a period, a day at most */
    int overlap;            /* enum slot_overlap */
    int64_t expires_ms;     /* of its tasks; 0: with the next slot */
    int64_t alarm_after_ms; /* after a slot; 0: a period, 5 minutes at least */
    /* its state: SCHEDULE_ROW_STATE */
    int64_t paused_at;
    char *paused_by, *pause_reason;
    uint64_t version;
    int64_t next_at; /* its first slot that is not decided */
    int64_t last_at; /* its last slot that ran */
    uint32_t missed; /* slots since then that did not run, but for those of pauses */
    char *zone_version;
    uint64_t zone_digest;
    int64_t create_at, update_at;
    char *actor; /* who changed it last */
    /* its last run, and what has been, if asked for: SCHEDULE_ROW_RUNS */
    uint64_t task_id;   /* 0: there was none, or it has been deleted */
    int status;         /* of the task now, enum task_status; -1: not known */
    int64_t started_at; /* the last attempt */
    int64_t finished_at;
    int exit;             /* -1: none */
    char *error;          /* NULL: none */
    int64_t done_at;      /* the last slot whose run is done */
    int64_t decided_at;   /* when the last slot was decided */
    uint64_t missed_week; /* slots of seven days that did not run, but for those of pauses */
};

/* clang-format off */
/* Columns, as TASK_COLUMNS in base/task.h. X(in dq_schedule, name, type, field, cut at, flags, get,
 * help). get is in src/cli. The first is the key. */
#define SCHEDULE_ROW_SET(X)                                                                               \
    X("name", "name", NAME, name, COLUMN_NARROW, 0, NULL, "")                                             \
    X("owner", "owner", TEXT, owner, 0, 0, NULL, "")                                                      \
    X("tag", "tag", TAG, tag, COLUMN_NARROW, 0, NULL, "")                                                 \
    X("message_body", "body", BYTES, body, 60, 0, NULL, "")                                               \
    X("kind", "kind", INT, kind, 0, 0, get_kind, "")                                                      \
    X("expression", "expression", NAME, expression, 0, 0, NULL, "")                                       \
    X("zone", "zone", NAME, zone, 0, 0, NULL, "")                                                         \
    X("from_time", "from", TIME, from_at, 0, 0, NULL, "")                                                 \
    X("to_time", "to", TIME, to_at, 0, 0, NULL, "")                                                       \
    X("spread", "spread", MS, spread_ms, 0, 0, get_spread_ms, "")                                                  \
    X("catch_up", "catch_up", INT, catch_up, 0, 0, get_catch_up, "")                                      \
    X("catch_up_within", "within", MS, within_ms, 0, 0, get_within_ms, "")                                         \
    X("overlap", "overlap", INT, overlap, 0, 0, get_overlap, "")                                          \
    X("expires", "expires", MS, expires_ms, 0, 0, get_expires_ms, "")                                               \
    X("alarm_after", "alarm_after", MS, alarm_after_ms, 0, 0, get_alarm_after_ms, "")
#define SCHEDULE_ROW_STATE(X)                                                                             \
    X("paused_time", "paused", TIME, paused_at, 0, 0, NULL, "")                                           \
    X("paused_by", "paused_by", TEXT, paused_by, 0, 0, NULL, "")                                          \
    X("pause_reason", "pause_reason", TEXT, pause_reason, 60, 0, NULL, "")                                \
    X("version", "version", U64, version, 0, 0, NULL, "")                                                 \
    X("next_slot", "next", TIME, next_at, 0, 0, NULL, "")                                                 \
    X("last_slot", "last", TIME, last_at, 0, 0, NULL, "")                                                 \
    X("missed", "missed", U32, missed, 0, 0, NULL, "")                                                    \
    X("zone_version", "zone_version", NAME, zone_version, 0, 0, NULL, "")                                 \
    X("zone_digest", "zone_digest", U64, zone_digest, 0, 0, NULL, "")                                     \
    X("create_time", "created", TIME, create_at, 0, 0, NULL, "")                                          \
    X("update_time", "updated", TIME, update_at, 0, 0, NULL, "")                                          \
    X("actor", "actor", NAME, actor, 0, 0, NULL, "")
/* Of a slot: s, its row of dq_slot, and t, its task. */
#define SCHEDULE_ROW_RUN(X)                                                                               \
    X("t.id", "task_id", ID, task_id, 0, 0, NULL, "")                                                     \
    X("COALESCE(" SQL_STATE("t.") ", s.result)", "result", EXIT, status, 0, 0, get_result, "")            \
    X("COALESCE(t.execution_time, s.start_time)", "started", TIME, started_at, 0, 0, NULL, "")            \
    X("COALESCE(t.finish_time, s.finish_time)", "finished", TIME, finished_at, 0, 0, NULL, "")            \
    X("COALESCE(t.exit_code, s.exit_code)", "exit", EXIT, exit, 0, 0, NULL, "")                           \
    X("COALESCE(t.error_stack, s.error)", "error", TEXT, error, 60, 0, NULL, "")
/* Of c, a row of dq_schedule, beside s, the row of dq_slot of its last slot, and t, its task. */
#define SCHEDULE_ROW_RUNS(X)                                                                              \
    SCHEDULE_ROW_RUN(X)                                                                                   \
    X("IF(t.status = 1, c.last_slot, (SELECT d.slot FROM dq_slot d FORCE INDEX (PRIMARY)"                 \
      " WHERE d.name = c.name AND d.result = 1 AND NOT d.slot" AHEAD_STORE_FAR                            \
      " ORDER BY d.slot DESC LIMIT 1))",                                                                  \
      "done", TIME, done_at, 0, 0, NULL, "")                                                              \
    X("(SELECT d.decide_time FROM dq_slot d FORCE INDEX (PRIMARY) WHERE d.name = c.name"                  \
      " ORDER BY d.slot DESC LIMIT 1)",                                                                   \
      "decided", TIME, decided_at, 0, 0, NULL, "")                                                        \
    X("(SELECT SUM(w.slots) FROM dq_slot w FORCE INDEX (PRIMARY) WHERE w.name = c.name"                   \
      " AND w.decision IN (2,3,5)"                                                                        \
      " AND w.slot > UTC_TIMESTAMP(3) - INTERVAL 7 DAY AND NOT w.slot" AHEAD_STORE_FAR ")",               \
      "missed_week", U64, missed_week, 0, 0, NULL, "")
/* clang-format on */

/* What a statement with SCHEDULE_ROW_RUNS reads, from dq_schedule c on. */
#define SCHEDULE_ROW_JOIN "dq_schedule c" SCHEDULE_ROW_JOIN_RUNS
#define SCHEDULE_ROW_JOIN_RUNS                                                                     \
    " LEFT JOIN dq_slot s FORCE INDEX (PRIMARY) ON s.name = c.name AND s.slot = c.last_slot"       \
    " LEFT JOIN dq_task t FORCE INDEX (PRIMARY) ON t.id = " SCHEDULE_ROW_TASK("c.name",            \
                                                                              "c.last_slot")
/* The newest task of a slot: one that was backfilled has several. */
#define SCHEDULE_ROW_TASK(name, slot)                                                              \
    "(SELECT MAX(k.id) FROM dq_task k FORCE INDEX (live_key) WHERE k.task_key = " SCHEDULE_ROW_KEY( \
        name, slot) " AND k.missed_slots IS NOT NULL)"
/* slot_put_key in SQL. */
#define SCHEDULE_ROW_KEY(name, slot)                                                               \
    "CONCAT(" name ", '@', REPLACE(REPLACE(" slot ", ' ', 'T'), '.000', ''), 'Z')"

/* Appends its columns, but for SCHEDULE_ROW_RUNS, of dq_schedule c (without the body: NULL for it),
 * and returns how many these are; and reads them from a row that begins with them. */
unsigned schedule_row_put_columns(struct buf *sql, bool body);
void schedule_row_read(const struct db_rows *r, struct schedule *ret);
/* Reads schedules by `tail`, " WHERE ..." of dq_schedule c (see SCHEDULE_ROW_JOIN if runs). Without
 * bodies, these are left out. Free *ret with schedule_row_free. */
int schedule_row_list(struct db *db, const char *tail, bool bodies, bool runs,
                      struct schedule **ret, size_t *ret_count, struct err *err)
    __attribute__((warn_unused_result));
void schedule_row_free(struct schedule *rows, size_t count);
void schedule_row_done(struct schedule *s); /* what its fields point to */

/* How late its last attempt started. False: it has not. */
bool schedule_row_late(const struct schedule *s, int64_t *ret_ms);
/* Its timetable. NULL: ERR_DATA. */
struct timetable *schedule_row_timetable(const struct schedule *s, struct err *err)
    __attribute__((warn_unused_result));

/* Its task for a slot. *key, which is replaced, has to live as long. */
struct task_new schedule_row_task(const struct schedule *s, const struct slot_act *act,
                                  struct buf *key);

/* The columns of SCHEDULE_ROW_SET, and of which of them two schedules differ: bits by their
 * numbers. */
#define SCHEDULE_ROW_NUMBER(sql, name, type, field, ...) SCHEDULE_ROW_##field,
enum { SCHEDULE_ROW_SET(SCHEDULE_ROW_NUMBER) SCHEDULE_ROW_SET_END };
extern const struct column schedule_row_columns[];
unsigned schedule_row_differs(const struct schedule *a, const struct schedule *b);
/* Those that change when its slots are. */
#define SCHEDULE_ROW_TIMING                                                                        \
    (1u << SCHEDULE_ROW_kind | 1u << SCHEDULE_ROW_expression | 1u << SCHEDULE_ROW_zone |           \
     1u << SCHEDULE_ROW_from_at | 1u << SCHEDULE_ROW_to_at)

#endif
