/*
 * complete_store.c - see complete_store.h. Invariant: no statement reads more rows than the inner
 * LIMIT of its table, or entries than there are tags.
 */
#include "store/ask/complete_store.h"
#include "base/text.h"
#include "store/db/columns.h"
#include "store/row/sql.h"

/* clang-format off */
#define WORD_COLUMNS(X)     \
    X(WORD_TEXT, "word")    \
    X(WORD_HELP, "help")
/* clang-format on */
enum { WORD_COLUMNS(COLUMNS_NAME) WORD_COUNT };

/* Tables of word and help. The minimum makes the server skip from tag to tag. */
static const char tags[] =
    "SELECT tag AS word, NULL AS help FROM (SELECT tag, MIN(expected_time)"
    " FROM dq_task FORCE INDEX (due) WHERE status < " TEXT_OF(
        SQL_STATUS_COUNT) " GROUP BY status, tag"
                          " LIMIT 2000) t"
                          " UNION SELECT pattern, NULL FROM dq_handler WHERE is_glob = 0";
static const char ids[] = "SELECT id AS word, tag AS help FROM (SELECT id, tag FROM dq_task"
                          " FORCE INDEX (PRIMARY) ORDER BY id DESC LIMIT 1000) t";

/* A value: the prefix. */
static const char keys[] =
    "SELECT task_key AS word, tag AS help FROM (SELECT task_key, tag, live FROM dq_task"
    " FORCE INDEX (live_key) WHERE task_key >= ? ORDER BY task_key LIMIT 1000) t WHERE live = 1";

struct reading {
    void (*each)(const char *word, const char *help, void *arg);
    void *arg;
};

static void take_word(const struct db_rows *r, void *arg)
{
    const struct reading *w = arg;

    w->each(db_string(r, WORD_TEXT), db_text(r, WORD_HELP, NULL), w->arg);
}

int complete_store_list(struct db *db, enum complete_store_kind kind, const char *prefix,
                        void (*each)(const char *word, const char *help, void *arg), void *arg,
                        struct err *err)
{
    struct reading w = {each, arg};
    BUF_LOCAL struct buf from = BUF_INIT;

    if (kind == COMPLETE_STORE_KEYS)
        sql_put(&from, keys, SQL_TEXT(prefix));
    else
        buf_str(&from, kind == COMPLETE_STORE_TAGS ? tags : ids);
    return sql_all(db, WORD_COUNT, take_word, &w, err,
                   "SELECT ? FROM (?) w WHERE LEFT(word, CHAR_LENGTH(?)) = ? ORDER BY ? LIMIT 200",
                   SQL_PART(COLUMNS_SELECT(WORD_COLUMNS)), SQL_PART(from.data), SQL_TEXT(prefix),
                   SQL_TEXT(prefix), SQL_PART(kind == COMPLETE_STORE_IDS ? "word DESC" : "word"));
}
