/*
 * db_literal.c - values as SQL literals.
 *
 * Invariant: whatever bytes come in, what is appended is one literal. It relies on backslash escapes being on, which db_connect
 * sees to.
 */
#include "base/json.h"
#include "base/task.h"
#include "base/when.h"
#include "store/db.h"

#include <string.h>

/* Quotes, backslashes and NULs; every other byte may stand in a literal as it is. In utf8mb4 none of the three is part of a longer
 * character. */
static void put_quoted(struct buf *sql, const char *p, size_t len)
{
    const char *end = p + len;

    buf_reserve(sql, len + 2);
    buf_chr(sql, '\'');
    while (p < end) {
        const char *plain = p;
        while (p < end && *p != '\'' && *p != '\\' && *p)
            p++;
        buf_add(sql, plain, (size_t)(p - plain));
        if (p == end)
            break;
        buf_chr(sql, '\\');
        buf_chr(sql, *p ? *p : '0');
        p++;
    }
    buf_chr(sql, '\'');
}

/* Text of foreign origin (a handler's error) may not be UTF-8, and one bad byte must not make the server refuse the whole batch. */
void db_put_text(struct buf *sql, const char *s)
{
    if (!s) {
        buf_str(sql, "NULL");
        return;
    }
    size_t len = strlen(s), bad;
    if (json_utf8_valid(s, len, NULL, &bad)) {
        put_quoted(sql, s, len);
        return;
    }
    struct buf clean = BUF_INIT;
    buf_add(&clean, s, len);
    for (size_t at = 0; !json_utf8_valid(clean.data + at, len - at, NULL, &bad); at += bad + 1)
        clean.data[at + bad] = '?';
    put_quoted(sql, clean.data, len);
    buf_done(&clean);
}

void db_put_bytes(struct buf *sql, const void *p, size_t len)
{
    if (!p) {
        buf_str(sql, "NULL");
        return;
    }
    buf_str(sql, "_binary");
    put_quoted(sql, p, len);
}

void db_put_stamp(struct buf *sql, uint64_t stamp)
{
    unsigned date = (unsigned)(stamp / 1000000000), clock = (unsigned)(stamp % 1000000000);

    buf_printf(sql, "'%04u-%02u-%02u %02u:%02u:%02u.%03u'", date / 10000, date / 100 % 100, date % 100, clock / 10000000,
               clock / 100000 % 100, clock / 1000 % 100, clock % 1000);
}

void db_put_time(struct buf *sql, int64_t at)
{
    char text[WHEN_TEXT_SIZE];

    if (at == TASK_TIME_NONE)
        buf_str(sql, "NULL");
    else
        buf_printf(sql, "'%s'", when_format_sql(text, at));
}
