/*
 * add_token.c - see add_token.h. Invariant: 0 is returned only if the server says that no row has
 * the token.
 */
#include "store/row/add_token.h"
#include "base/when.h"
#include "store/db/columns.h"
#include "store/db/db_connect.h"
#include "store/db/db_latest.h"
#include "store/row/sql.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#define WAIT_MS 5000
#define AGAIN_MS 200

void add_token_init(const struct db *db, struct add_token *t)
{
    if (getrandom(t->bytes, sizeof t->bytes, 0) != sizeof t->bytes)
        abort(); /* 16 bytes cannot fail once the kernel's pool is up */
    t->first_id = UINT64_MAX;
    t->left = db_connect_left(db);
}

/* The greatest id is lower than at an earlier try if the server came back without its last rows. An
 * account that may not read cannot look anything up either. */
int add_token_lower(struct db *db, struct add_token *t, const char *from, struct err *err)
{
    uint64_t greatest = 0;
    int rc = sql_first(db, COLUMNS_ONE, sql_take_u64, &greatest, err,
                       "SELECT (SELECT COALESCE(MAX(id), 0) FROM dq_task)?", SQL_PART(from));

    if (rc == ERR_DENIED && !*from)
        rc = 1;
    if (rc == 1 && greatest < t->first_id)
        t->first_id = greatest + 1;
    return rc;
}

int add_token_find(struct db *db, const struct add_token *t, const char *columns, unsigned count,
                   void (*take)(const struct db_rows *r, void *arg), void *arg, struct err *err)
{
    const struct timespec again = {.tv_nsec = AGAIN_MS * 1000000L};
    int64_t deadline = when_steady() + WAIT_MS;
    BUF_LOCAL struct buf sql = BUF_INIT;
    int rc;

    if (t->first_id == UINT64_MAX)
        return 0;
    sql_put(&sql,
            "SELECT ? FROM dq_task FORCE INDEX (PRIMARY) WHERE id >= ? AND add_token = ? LIMIT 1",
            SQL_PART(columns), SQL_ID(t->first_id), SQL_TOKEN(t->bytes));
    for (;;) {
        rc = db_latest_begin_anywhere(db, err);
        if (rc == 0)
            rc = db_first(db, &sql, count, take, arg, err);
        if (rc == 0 && db_connect_is_read_only(db))
            rc = err_set(err, ERR_UNAVAILABLE, "%s is read-only, and has no such row yet",
                         db_server(db));
        else if (rc == 0 && db_connect_left(db) != t->left)
            rc = err_set(err, ERR_UNAVAILABLE,
                         "%s is another server than the one that was asked, and has no such row",
                         db_server(db));
        db_latest_end(db);
        if (!err_may_pass(rc) || (when_steady() >= deadline && !db_connect_again(db, rc, err)))
            break;
        nanosleep(&again, NULL);
    }
    return rc;
}
