/*
 * escape.c - any bytes, escaped for a terminal, JSON or SQL, stay inside their field and read back
 * unchanged.
 */
#include "base/json.h"
#include "base/mem.h"
#include "base/text.h"
#include "store/db/db.h"
#include "store/db/db_put.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void try_terminal(const char *p, size_t len)
{
    struct buf b = BUF_INIT;
    uint32_t c;

    text_escape(&b, p, len, len % 3 ? 0 : 20);
    for (size_t at = 0, n; at < b.len; at += n) {
        n = text_utf8_next(b.data + at, b.len - at, &c);
        if (n == 0 || c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x202a && c <= 0x202e) ||
            (c >= 0x2066 && c <= 0x2069))
            abort();
    }
    if (len % 3 == 0 && text_width(b.data ? b.data : "", b.len) > 20)
        abort();
    buf_done(&b);
}

static void try_json(const char *p, size_t len)
{
    static struct json_reader *reader;
    static const struct json_member members[] = {{"body", JSON_BYTES, true}};
    struct buf b = BUF_INIT;
    struct json_value v;

    if (!reader)
        reader = json_reader_new();
    buf_chr(&b, '{');
    json_put_bytes(&b, "body", p, len);
    buf_chr(&b, '}');
    if (memchr(b.data, '\n', b.len) ||
        json_read_object(reader, b.data, b.len, members, 1, &v, NULL) < 0)
        abort();
    if (v.len != len || (len && memcmp(v.text, p, len) != 0))
        abort();
    buf_done(&b);
}

static unsigned digit(char c)
{
    const char *digits = "0123456789abcdef", *p = c ? strchr(digits, c) : NULL;
    if (!p)
        abort();
    return (unsigned)(p - digits);
}

/* Reads a literal as a server does whatever its modes and character sets are: what is not in hex is
 * ASCII without quote and backslash. Nothing may stand behind it. */
static void read_literal(const struct buf *sql, const char *introducer, struct buf *ret)
{
    const char *p = sql->data, *end = p + sql->len - 1;
    bool hex;

    if (!strncmp(p, introducer, strlen(introducer)))
        p += strlen(introducer);
    hex = !strncmp(p, " X'", 3);
    p += hex ? 3 : 1;
    if (p > end || p[-1] != '\'' || *end != '\'')
        abort();
    for (; p < end; p += hex ? 2 : 1) {
        if (!hex && (*p == '\'' || *p == '\\' || *p <= 0))
            abort();
        buf_chr(ret, hex ? (char)(digit(p[0]) << 4 | digit(p[1])) : *p);
    }
    if (p != end)
        abort();
}

static void try_sql(const char *p, size_t len)
{
    struct buf sql = BUF_INIT, back = BUF_INIT;
    char *text = mem_dup(p, len);

    db_put_bytes(&sql, p, len);
    read_literal(&sql, "_binary", &back);
    if (back.len != len || (len && memcmp(back.data, p, len) != 0))
        abort();
    buf_reset(&sql);
    buf_reset(&back);
    db_put_text(&sql, text);
    read_literal(&sql, "_utf8mb4", &back);
    if (back.len != strlen(text) ||
        !json_utf8_valid(back.data ? back.data : "", back.len, NULL, NULL))
        abort();
    free(text);
    buf_done(&sql);
    buf_done(&back);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static const char none = 0;
    const char *p = len ? (const char *)bytes : &none;

    try_terminal(p, len);
    try_json(p, len);
    try_sql(p, len);
    return 0;
}
