/*
 * schedule_row.c - see schedule_row.h. Invariant: the columns stand in one list, from which the
 * statements that read and write them come.
 */
#include "store/fleet/schedule_row.h"
#include "base/mem.h"
#include "store/row/field.h"

#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#define COLUMN_ROW(...) COLUMN_UNSHOWN(schedule, __VA_ARGS__),
const struct column schedule_row_columns[] = {
    SCHEDULE_ROW_SET(COLUMN_ROW) SCHEDULE_ROW_STATE(COLUMN_ROW) SCHEDULE_ROW_RUNS(COLUMN_ROW)};
#define COUNT_ONE(...) +1 /* NOLINT(bugprone-macro-parentheses): a term of a sum */
enum {
    OWN = SCHEDULE_ROW_SET_END SCHEDULE_ROW_STATE(COUNT_ONE),
    ALL = OWN SCHEDULE_ROW_RUNS(COUNT_ONE)
};
static const struct field_table table = {schedule_row_columns, ALL, sizeof(struct schedule)};

struct listing {
    struct schedule *rows;
    size_t count, cap;
    bool runs;
};

static const struct schedule none = {.status = -1,
                                     .exit = -1,
                                     .started_at = TASK_TIME_NONE,
                                     .finished_at = TASK_TIME_NONE,
                                     .done_at = TASK_TIME_NONE,
                                     .decided_at = TASK_TIME_NONE};

unsigned schedule_row_put_columns(struct buf *sql, bool body)
{
    const struct column *behind = schedule_row_columns + SCHEDULE_ROW_body + 1;

    field_put_names(sql, "c.", schedule_row_columns, SCHEDULE_ROW_body);
    buf_str(sql, body ? ", c.message_body, " : ", NULL, ");
    field_put_names(sql, "c.", behind, OWN - SCHEDULE_ROW_body - 1);
    return OWN;
}

void schedule_row_read(const struct db_rows *r, struct schedule *ret)
{
    *ret = none;
    field_read_all(r, schedule_row_columns, OWN, ret);
}

static void take_row(const struct db_rows *r, void *arg)
{
    struct listing *l = arg;

    MEM_ROOM(l->rows, l->count, l->cap);
    struct schedule *s = &l->rows[l->count++];
    *s = none;
    field_read_all(r, schedule_row_columns, l->runs ? ALL : OWN, s);
}

int schedule_row_list(struct db *db, const char *tail, bool bodies, bool runs,
                      struct schedule **ret, size_t *ret_count, struct err *err)
{
    struct listing l = {.runs = runs};
    BUF_LOCAL struct buf sql = BUF_INIT;

    buf_str(&sql, "SELECT ");
    unsigned columns = schedule_row_put_columns(&sql, bodies);
    if (runs) {
        buf_str(&sql, ", ");
        columns += field_put_names(&sql, "", schedule_row_columns + OWN, ALL - OWN);
    }
    buf_printf(&sql, " FROM %s%s", runs ? SCHEDULE_ROW_JOIN : "dq_schedule c", tail);
    int rc = db_all_streamed(db, &sql, columns, take_row, &l, err);
    if (rc < 0) {
        schedule_row_free(l.rows, l.count);
        return rc;
    }
    *ret = l.rows;
    *ret_count = l.count;
    return 0;
}

void schedule_row_free(struct schedule *rows, size_t count)
{
    field_free(&table, rows, count);
}

void schedule_row_done(struct schedule *s)
{
    field_done(&table, s, 1);
}

bool schedule_row_late(const struct schedule *s, int64_t *ret_ms)
{
    if (s->started_at == TASK_TIME_NONE || s->last_at == TASK_TIME_NONE)
        return false;
    *ret_ms = MAX(s->started_at - s->last_at - slot_offset_ms(s->name, s->spread_ms), 0);
    return true;
}

struct timetable *schedule_row_timetable(const struct schedule *s, struct err *err)
{
    return timetable_new(&(struct timetable_spec){.kind = (enum timetable_kind)s->kind,
                                                  .expression = s->expression,
                                                  .zone = s->zone,
                                                  .from_at = s->from_at,
                                                  .to_at = s->to_at},
                         err);
}

/* As literals: what would be stored. */
unsigned schedule_row_differs(const struct schedule *a, const struct schedule *b)
{
    struct db_statement left = DB_STATEMENT_INIT, right = DB_STATEMENT_INIT;
    unsigned differ = 0;

    for (unsigned c = 0; c < SCHEDULE_ROW_SET_END; c++) {
        db_statement_cut(&left, 0, 0);
        db_statement_cut(&right, 0, 0);
        if (c != SCHEDULE_ROW_body) {
            field_put_values(&left, &schedule_row_columns[c], 1, a);
            field_put_values(&right, &schedule_row_columns[c], 1, b);
        } else {
            buf_add(&left.sql, a->body, a->body_size);
            buf_add(&right.sql, b->body, b->body_size);
        }
        differ |= (left.sql.len != right.sql.len ||
                   (left.sql.len && memcmp(left.sql.data, right.sql.data, left.sql.len) != 0))
                      ? 1u << c
                      : 0u;
    }
    db_statement_done(&left);
    db_statement_done(&right);
    return differ;
}

struct task_new schedule_row_task(const struct schedule *s, const struct slot_act *act,
                                  struct buf *key)
{
    buf_reset(key);
    slot_put_key(key, s->name, act->at);
    return (struct task_new){
        .tag = s->tag,
        .key = key->data,
        .body = s->body,
        .body_size = s->body_size,
        .expected_at = act->due_at,
        .expires_ms = s->expires_ms,
        .expires_at = s->expires_ms || act->expires_at == TASK_TIME_NONE ? 0 : act->expires_at,
        .scheduled = true,
        .missed_slots = act->missed};
}
