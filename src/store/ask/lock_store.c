/*
 * lock_store.c - see lock_store.h.
 */
#include "store/ask/lock_store.h"
#include "base/mem.h"
#include "base/when.h"
#include "store/db/columns.h"
#include "store/row/sql.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* trx_started has the time of the server's zone, whatever that of the session is. */
#define AGE "TIMESTAMPDIFF(SECOND, CONVERT_TZ(x.trx_started, 'SYSTEM', '+00:00'), UTC_TIMESTAMP())"
/* clang-format off */
#define HOLDER_COLUMNS(X)                        \
    X(HOLDER_CONNECTION, "x.trx_mysql_thread_id") \
    X(HOLDER_USER, "COALESCE(p.user, '?')")      \
    X(HOLDER_HOST, "COALESCE(p.host, '?')")      \
    X(HOLDER_AGE, AGE)                           \
    X(HOLDER_OTHERS, "COUNT(*) OVER () - 1")
/* clang-format on */
enum { HOLDER_COLUMNS(COLUMNS_NAME) HOLDER_COUNT };

static void take_holder(const struct db_rows *r, void *arg)
{
    struct lock_holder *h = arg;
    const char *host = db_string(r, HOLDER_HOST), *port = strrchr(host, ':');

    *h = (struct lock_holder){.connection = db_u64(r, HOLDER_CONNECTION),
                              .age_s = db_i64(r, HOLDER_AGE, 0),
                              .others = db_u64(r, HOLDER_OTHERS)};
    snprintf(h->who, sizeof h->who, "%s@%.*s", db_string(r, HOLDER_USER),
             port ? (int)(port - host) : (int)strlen(host), host);
}

static int find(struct db *db, const char *where, struct lock_holder *ret, struct err *err)
{
    *ret = (struct lock_holder){0};
    return sql_read(
        db, HOLDER_COUNT, take_holder, ret, err,
        "SELECT ? FROM information_schema.innodb_trx x"
        " LEFT JOIN information_schema.processlist p ON p.id = x.trx_mysql_thread_id"
        " WHERE x.trx_mysql_thread_id <> CONNECTION_ID()"
        " AND (x.trx_mysql_thread_id <> 0 OR x.trx_rows_modified > 0)?" /* or the server's */
        " ORDER BY x.trx_started LIMIT 1",
        SQL_PART(COLUMNS_SELECT(HOLDER_COLUMNS)), SQL_PART(where));
}

int lock_store_oldest(struct db *db, struct lock_holder *ret, struct err *err)
{
    return find(db, "", ret, err);
}

int lock_store_holder(struct db *db, uint64_t id, struct lock_holder *ret, struct err *err)
{
    BUF_LOCAL struct buf where = BUF_INIT;
    int rc = ERR_DENIED;

    buf_str(&where, " AND x.trx_rows_locked > 0 AND " AGE " >= 1");
    size_t all = where.len;
    buf_printf(&where,
               " AND (NOT @@performance_schema"
               " OR x.trx_id IN (SELECT engine_transaction_id FROM performance_schema.data_locks"
               " WHERE object_schema = DATABASE() AND object_name = '%s' AND lock_type = 'RECORD'"
               " AND lock_status = 'GRANTED'",
               id ? "dq_task" : "dq_limit");
    if (id)
        buf_printf(&where, " AND index_name = 'PRIMARY' AND lock_data = '%" PRIu64 "'", id);
    buf_str(&where, "))");
    if (!db_is_mariadb(db))
        rc = find(db, where.data, ret, err);
    if (rc == ERR_DENIED) {
        where.data[where.len = all] = '\0';
        rc = find(db, where.data, ret, err);
    }
    return rc;
}

char *lock_store_describe(const struct lock_holder *h)
{
    char age[WHEN_TEXT_SIZE], many[48] = "";

    if (!h->who[0])
        return NULL;
    if (h->others)
        snprintf(many, sizeof many, "one of %" PRIu64 " transactions, the oldest: ", h->others + 1);
    if (!h->connection)
        return mem_printf("%sa prepared XA transaction, open for %s", many,
                          when_format_rough(age, h->age_s * WHEN_SECOND));
    return mem_printf("%sconnection %" PRIu64 ", %s, open for %s", many, h->connection, h->who,
                      when_format_rough(age, h->age_s * WHEN_SECOND));
}

char *lock_store_remedy(const struct lock_holder *h)
{
    return h->connection ? mem_printf("KILL %" PRIu64, h->connection)
                         : mem_strdup("XA ROLLBACK (XA RECOVER lists it)");
}
