/*
 * task_new.c - a new task as SQL.
 *
 * Invariant: several rows together fit into the packets that the caller allows.
 */
#include "store/row/task_new.h"
#include "store/db/db_put.h"
#include "store/row/sql.h"

#include <inttypes.h>

#define PACKET_ASSUMED 65536 /* every server takes this much */

void task_new_put_expected(struct buf *sql, const struct task_new *t)
{
    sql_put(sql, "?",
            t->expected_at == TASK_TIME_NONE ? SQL_FROM_NOW(t->delay_ms)
                                             : SQL_TIME(t->expected_at));
}

void task_new_put_max_attempts(struct buf *sql, const struct task_new *t)
{
    if (t->max_attempts)
        buf_u64(sql, t->max_attempts);
    else
        buf_str(sql, "NULL");
}

/* A time in the past means due at once: it counts from now on. An instant moves along if the task
 * is due later than it was given. */
void task_new_put_expires(struct buf *sql, const struct task_new *t, const char *due)
{
    if (t->expires_at) {
        db_put_time(sql, t->expires_at);
        if (due) {
            buf_str(sql, " + INTERVAL GREATEST(TIMESTAMPDIFF(MICROSECOND, GREATEST("
                         "UTC_TIMESTAMP(3), ");
            task_new_put_expected(sql, t);
            buf_printf(sql, "), %s), 0) MICROSECOND", due);
        }
    } else if (t->expires_ms) {
        buf_str(sql, "GREATEST(UTC_TIMESTAMP(3), ");
        if (due)
            buf_str(sql, due);
        else
            task_new_put_expected(sql, t);
        buf_printf(sql, ") + INTERVAL %" PRId64 " MICROSECOND", t->expires_ms * 1000);
    } else {
        buf_str(sql, "NULL");
    }
}

unsigned task_new_columns(const struct task_new *t, size_t n)
{
    unsigned has = 0;

    for (size_t i = 0; i < n; i++)
        has |= (t[i].key ? TASK_NEW_KEY : 0u) | (t[i].max_attempts ? TASK_NEW_MAX_ATTEMPTS : 0u) |
               (t[i].delay_ms ? TASK_NEW_DELAY : 0u) | (t[i].attempt ? TASK_NEW_ATTEMPT : 0u) |
               (t[i].expires_ms || t[i].expires_at ? TASK_NEW_EXPIRES : 0u) |
               (t[i].scheduled ? TASK_NEW_SCHEDULED : 0u) | (t[i].level ? TASK_NEW_LEVEL : 0u);
    return has;
}

void task_new_put_insert(struct buf *sql, unsigned has)
{
    buf_printf(
        sql,
        "INSERT INTO dq_task (tag, message_body, body_size, add_token, expected_time, create_time%s%s%s%s%s%s%s) VALUES ",
        has & TASK_NEW_KEY ? ", task_key, live" : "",
        has & TASK_NEW_MAX_ATTEMPTS ? ", max_attempts" : "",
        has & TASK_NEW_DELAY ? ", delay_time" : "", has & TASK_NEW_ATTEMPT ? ", attempt" : "",
        has & TASK_NEW_EXPIRES ? ", expires_time" : "",
        has & TASK_NEW_SCHEDULED ? ", missed_slots" : "",
        has & TASK_NEW_LEVEL ? ", status, priority" : "");
}

static void put_row(struct db_statement *st, const struct task_new *t, unsigned has,
                    const unsigned char *token)
{
    struct buf *sql = &st->sql;

    buf_chr(sql, '(');
    db_put_text(sql, t->tag);
    buf_chr(sql, ',');
    db_statement_put(st, t->body ? t->body : "", t->body_size);
    buf_chr(sql, ',');
    buf_u64(sql, t->body_size);
    buf_chr(sql, ',');
    if (token)
        sql_put_token(sql, token);
    else
        buf_str(sql, "NULL");
    buf_chr(sql, ',');
    task_new_put_expected(sql, t);
    buf_str(sql, ",UTC_TIMESTAMP(3)");
    if (has & TASK_NEW_KEY) {
        buf_chr(sql, ',');
        db_put_text(sql, t->key);
        buf_str(sql, t->key ? ",1" : ",NULL");
    }
    if (has & TASK_NEW_MAX_ATTEMPTS) {
        buf_chr(sql, ',');
        task_new_put_max_attempts(sql, t);
    }
    if (has & TASK_NEW_DELAY) {
        buf_chr(sql, ',');
        buf_u64(sql, (unsigned long long)t->delay_ms);
    }
    if (has & TASK_NEW_ATTEMPT) {
        buf_chr(sql, ',');
        buf_u64(sql, t->attempt);
    }
    if (has & TASK_NEW_EXPIRES) {
        buf_chr(sql, ',');
        task_new_put_expires(sql, t, NULL);
    }
    if (has & TASK_NEW_SCHEDULED)
        buf_printf(sql, t->scheduled ? ",%" PRIu32 : ",NULL", t->missed_slots);
    if (has & TASK_NEW_LEVEL)
        sql_put(sql, ",?,?", SQL_INT(sql_pending(t->level)), SQL_LEVEL(t->level));
    buf_chr(sql, ')');
}

int task_new_check_packet(struct db *db, const struct db_statement *st, const struct task_new *t,
                          struct err *err)
{
    size_t max = PACKET_ASSUMED, packet = db_statement_packet(st);

    if (packet <= max)
        return 0;
    int rc = db_max_packet(db, &max, err);
    if (rc == 0 && packet > max)
        rc = err_set(
            err, ERR_DATA,
            "a body of %zu bytes needs a packet of %zu bytes, but the server's max_allowed_packet is %zu: raise it, or store"
            " the body elsewhere and add a reference to it",
            t->body_size, packet, max);
    return rc;
}

size_t task_new_put_many(struct db_statement *st, const struct task_new *t, size_t n, unsigned has,
                         const unsigned char *token, size_t most)
{
    bool marked = false;
    size_t rows = 0;

    while (rows < n) {
        size_t len = st->sql.len, count = st->count;
        if (rows)
            buf_chr(&st->sql, ',');
        put_row(st, &t[rows], has, t[rows].key || !marked ? token : NULL);
        if (rows && db_statement_packet(st) > most) {
            db_statement_cut(st, len, count);
            break;
        }
        marked = marked || !t[rows].key;
        rows++;
    }
    return rows;
}
