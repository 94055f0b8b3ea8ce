/*
 * task_count.c - see task_count.h.
 */
#include "store/ask/task_count.h"
#include "store/db/columns.h"
#include "store/row/sql.h"

#include <inttypes.h>

int task_count(struct db *db, unsigned statuses, uint64_t most, uint64_t *ret, struct err *err)
{
    BUF_LOCAL struct buf sql = BUF_INIT;

    *ret = 0;
    buf_str(&sql, "SELECT COUNT(*) FROM (SELECT 1 FROM dq_task FORCE INDEX (due) WHERE ");
    sql_put_statuses(&sql, "", statuses);
    buf_printf(&sql, " LIMIT %" PRIu64 ") x", most);
    int rc = db_first(db, &sql, COLUMNS_ONE, sql_take_u64, ret, err);
    return rc < 0 ? rc : 0;
}
