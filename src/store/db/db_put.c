/*
 * db_put.c - values as SQL literals.
 *
 * Invariant: any bytes become exactly one literal, which means the same bytes in every character
 * set and sql_mode. Nothing is escaped: only ASCII characters other than quote and backslash are
 * put between quotes, everything else is in hex.
 */
#include "store/db/db_put.h"
#include "base/json.h"
#include "base/task.h"
#include "base/when.h"

#include <string.h>
#include <sys/param.h>

bool db_put_is_plain(const char *p, size_t len)
{
    unsigned odd = 0;

    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)p[i];
        odd |= (c == '\'') | (c == '\\') | (c == 0) | (c > 0x7e);
    }
    return !odd;
}

static void put_hex(struct buf *sql, const char *p, size_t len)
{
    static const char digits[] = "0123456789abcdef";

    char text[512];

    buf_reserve(sql, 2 * len + 4);
    buf_str(sql, " X'");
    while (len) {
        size_t n = MIN(len, sizeof text / 2);
        for (size_t i = 0; i < n; i++) {
            text[2 * i] = digits[(unsigned char)p[i] >> 4];
            text[2 * i + 1] = digits[(unsigned char)p[i] & 15];
        }
        buf_add(sql, text, 2 * n);
        p += n;
        len -= n;
    }
    buf_chr(sql, '\'');
}

static void put_plain(struct buf *sql, const char *p, size_t len)
{
    buf_reserve(sql, len + 3);
    buf_chr(sql, '\'');
    buf_add(sql, p, len);
    buf_chr(sql, '\'');
}

/* Text from a handler may not be UTF-8, and one bad byte must not make the server refuse a whole
 * batch. */
void db_put_text(struct buf *sql, const char *s)
{
    if (!s) {
        buf_str(sql, "NULL");
        return;
    }
    size_t len = strlen(s), bad;
    if (db_put_is_plain(s, len)) {
        put_plain(sql, s, len);
        return;
    }
    BUF_LOCAL struct buf clean = BUF_INIT;
    buf_add(&clean, s, len);
    for (size_t at = 0; !json_utf8_valid(clean.data + at, len - at, NULL, &bad); at += bad + 1)
        clean.data[at + bad] = '?';
    buf_str(sql, "_utf8mb4");
    put_hex(sql, clean.data, len);
}

void db_put_bytes(struct buf *sql, const void *p, size_t len)
{
    if (!p) {
        buf_str(sql, "NULL");
        return;
    }
    buf_str(sql, "_binary");
    if (db_put_is_plain(p, len))
        put_plain(sql, p, len);
    else
        put_hex(sql, p, len);
}

void db_put_stamp(struct buf *sql, int64_t stamp)
{
    unsigned date = (unsigned)(stamp / 1000000000), clock = (unsigned)(stamp % 1000000000);

    buf_printf(sql, "'%04u-%02u-%02u %02u:%02u:%02u.%03u'", date / 10000, date / 100 % 100,
               date % 100, clock / 10000000, clock / 100000 % 100, clock / 1000 % 100,
               clock % 1000);
}

void db_put_time(struct buf *sql, int64_t at)
{
    char text[WHEN_TEXT_SIZE];

    if (at == TASK_TIME_NONE)
        buf_str(sql, "NULL");
    else
        buf_printf(sql, "'%s'", when_format_sql(text, at));
}

size_t db_put_room(size_t len)
{
    return 2 * len + sizeof "_utf8mb4 X''";
}
