/*
 * claim_ref.c - claims in statements. Invariant: tasks are found by primary key.
 */
#include "store/row/claim_ref.h"
#include "base/mem.h"
#include "store/db/columns.h"
#include "store/row/sql.h"

#include <inttypes.h>
#include <stdlib.h>

int claim_ref_compare(const void *a, const void *b)
{
    const struct claim_ref *x = a, *y = b;

    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return x->version < y->version ? -1 : x->version > y->version;
}

static int by_version(const void *a, const void *b)
{
    const struct claim_ref *x = a, *y = b;

    if (x->version != y->version)
        return x->version < y->version ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

void claim_ref_put(struct buf *sql, const void *refs, int64_t n)
{
    const size_t count = (size_t)n;
    MEM_LOCAL struct claim_ref *sorted = mem_dup(refs, count * sizeof *sorted);

    qsort(sorted, count, sizeof *sorted, by_version);
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || sorted[i].version != sorted[i - 1].version)
            buf_printf(sql, "%sversion = %" PRIu64 " AND id IN (", i ? ")) OR (" : "((",
                       sorted[i].version);
        else
            buf_chr(sql, ',');
        buf_u64(sql, sorted[i].id);
    }
    buf_str(sql, ")))");
}

struct refs {
    struct claim_ref *items;
    size_t count, most;
};

enum { CLAIM_REF_COLUMNS(COLUMNS_NAME) CLAIM_REF_COUNT };

static void add_ref(const struct db_rows *r, void *arg)
{
    struct refs *x = arg;

    if (x->count < x->most)
        x->items[x->count++] =
            (struct claim_ref){db_u64(r, CLAIM_REF_ID), db_u64(r, CLAIM_REF_VERSION)};
}

int claim_ref_read(struct db *db, const struct buf *sql, struct claim_ref *refs, size_t count,
                   size_t *ret_count, struct err *err)
{
    struct refs x = {refs, 0, count};

    int rc = db_all(db, sql, CLAIM_REF_COUNT, add_ref, &x, err);
    if (rc == 0)
        *ret_count = x.count;
    return rc;
}

int claim_ref_find_values(struct db *db, struct claim_ref *ret, size_t count, size_t *ret_count,
                          struct err *err, const char *where, const struct sql_value *v, size_t n)
{
    BUF_LOCAL struct buf sql = BUF_INIT;

    buf_printf(&sql, "SELECT %s FROM dq_task FORCE INDEX (PRIMARY) WHERE ",
               COLUMNS_SELECT(CLAIM_REF_COLUMNS));
    sql_put_values(&sql, where, v, n);
    return claim_ref_read(db, &sql, ret, count, ret_count, err);
}
