/*
 * follow_up.c - see follow_up.h. Invariant: a body has at most BODY_MOST bytes, whatever the rows
 * hold: long texts are cut as they are read, and the body of the task is left out if it does not
 * fit beside them. JSON takes up to six bytes for one.
 */
#include "store/work/follow_up.h"
#include "base/json.h"
#include "base/mem.h"
#include "store/db/columns.h"
#include "store/row/rows.h"
#include "store/row/settlement.h"
#include "store/row/sql.h"
#include "store/row/task_new.h"

#include <inttypes.h>
#include <stdlib.h>

#define BODY_MOST 65536

/* A live task that has its key is somebody else's, as each failure adds one task: it gets another
 * one. */
#define FAILED_OWN_KEY "CONCAT('failed-', dq_task.id, '-', dq_task.version)"
#define FAILED_NEW_KEY                                                                             \
    "CONCAT(" FAILED_OWN_KEY ", IF(EXISTS (SELECT 1 FROM dq_task k FORCE INDEX (live_key)"         \
    " WHERE k.live = 1 AND k.task_key = " FAILED_OWN_KEY "), CONCAT('-', UUID_SHORT()), ''))"

/* clang-format off */
#define FAILED_COLUMNS(X)                                                                      \
    CLAIM_REF_COLUMNS(X) X(FAILED_STATUS, "status") X(FAILED_ATTEMPT, "attempt")               \
    X(FAILED_SIZE, "OCTET_LENGTH(message_body)")                                               \
    X(FAILED_BODY, "IF(OCTET_LENGTH(message_body) < 65536, message_body, NULL)")               \
    X(FAILED_TAG, "tag") X(FAILED_KEY, "task_key") X(FAILED_ERROR, "LEFT(error_stack, 1024)") \
    X(FAILED_OUTPUT, "RIGHT(output, 4096)") X(FAILED_NEW, FAILED_NEW_KEY)
/* clang-format on */
enum { FAILED_COLUMNS(COLUMNS_NAME) FAILED_COUNT };

struct following {
    const struct follow_up *wanted;
    size_t count;
    struct task_new *tasks; /* with keys and bodies of their own */
    size_t found;
};

static const char *tag_for(const struct following *f, uint64_t id)
{
    size_t i = 0;

    while (i < f->count && f->wanted[i].id != id)
        i++;
    return i < f->count ? f->wanted[i].tag : NULL;
}

static char *put_failed(const struct db_rows *r, size_t *ret_size)
{
    static const char *const names[] = {"tag", "key", "error", "output"};
    struct buf b = BUF_INIT;
    const char *p;
    size_t len;

    buf_printf(&b,
               "{\"id\":%" PRIu64 ",\"status\":\"%s\",\"attempts\":%" PRIu64 ",\"size\":%" PRIu64,
               db_u64(r, CLAIM_REF_ID), task_status_name(sql_status(r, FAILED_STATUS)),
               db_u64(r, FAILED_ATTEMPT), db_u64(r, FAILED_SIZE));
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if ((p = db_text(r, FAILED_TAG + i, &len))) {
            buf_printf(&b, ",\"%s\":", names[i]);
            json_put_string(&b, p, len);
        }
    size_t without = b.len;
    if ((p = db_text(r, FAILED_BODY, &len))) {
        buf_chr(&b, ',');
        json_put_bytes(&b, "body", p, len);
    }
    if (b.len >= BODY_MOST)
        b.len = without;
    buf_chr(&b, '}');
    *ret_size = b.len;
    return buf_take(&b);
}

static void add_failed(const struct db_rows *r, void *arg)
{
    struct following *f = arg;
    struct task_new *t = &f->tasks[f->found++];
    uint64_t id = db_u64(r, CLAIM_REF_ID);

    t->tag = tag_for(f, id);
    t->key = mem_strdup(db_string(r, FAILED_NEW));
    t->body = put_failed(r, &t->body_size);
    t->expected_at = TASK_TIME_NONE;
}

int follow_up_add(struct db *db, const struct follow_up *wanted, size_t count,
                  const struct claim_ref *ended, size_t ended_count, struct err *err)
{
    struct following f = {.wanted = wanted};
    struct claim_ref refs[ROWS_STEP];
    size_t n = 0;

    for (size_t i = 0; i < count; i++)
        f.count = wanted[i].tag ? i + 1 : f.count;
    for (size_t i = 0; f.count && i < ended_count; i++)
        if (tag_for(&f, ended[i].id))
            refs[n++] = (struct claim_ref){ended[i].id, ended[i].version + 1};
    if (!n)
        return 0;
    f.tasks = mem_zero(n, sizeof *f.tasks);
    int rc = sql_all(db, FAILED_COUNT, add_failed, &f, err,
                     "SELECT ? FROM dq_task FORCE INDEX (PRIMARY) WHERE ?"
                     " AND COALESCE(task_key, '') NOT REGEXP '^failed(-[0-9]+){2,3}$' AND ?",
                     SQL_PART(COLUMNS_SELECT(FAILED_COLUMNS)),
                     SQL_STATUSES(TASK_BIT(TASK_FAILED) | TASK_BIT(TASK_CANCELLED)),
                     CLAIM_REF_THESE(refs, n));
    for (size_t at = 0; rc == 0 && at < f.found;) {
        LOCAL_BY(db_statement_done) struct db_statement st = DB_STATEMENT_INIT;

        task_new_put_insert(&st.sql, TASK_NEW_KEY);
        at += task_new_put_many(&st, f.tasks + at, f.found - at, TASK_NEW_KEY, NULL,
                                SETTLEMENT_PACKET_LEAST - 4096);
        buf_str(&st.sql, TASK_NEW_KEEP_ANY);
        rc = db_statement_exec(db, &st, NULL, err);
    }
    for (size_t i = 0; i < f.found; i++) {
        free((char *)f.tasks[i].key);
        free((void *)f.tasks[i].body);
    }
    free(f.tasks);
    return rc < 0 ? rc : (int)f.found;
}
