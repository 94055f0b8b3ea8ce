/*
 * cell.c - one value in each of the formats.
 *
 * Invariant: whatever the value contains, the plain form has no control character, JSON is
 * well-formed and TSV stays one field.
 */
#include "cli/cell.h"

#include "base/json.h"
#include "base/task.h"
#include "base/text.h"
#include "base/when.h"

#include <inttypes.h>
#include <string.h>

void cell_set_text(struct cell *cell, const char *text)
{
    if (text) {
        cell->kind = CELL_TEXT;
        cell->text = text;
        cell->len = strlen(text);
    }
}

void cell_set_bytes(struct cell *cell, const void *p, size_t len)
{
    if (p) {
        cell->kind = CELL_BYTES;
        cell->text = p;
        cell->len = len;
    }
}

void cell_set_number(struct cell *cell, uint64_t number)
{
    cell->kind = CELL_NUMBER;
    cell->number = number;
}

void cell_set_time(struct cell *cell, int64_t at)
{
    if (at != TASK_TIME_NONE) {
        cell->kind = CELL_TIME;
        cell->at = at;
    }
}

void cell_put_time(struct buf *b, const struct cell_style *style, int64_t at, bool exact)
{
    char text[WHEN_TEXT_SIZE];
    if (style->utc) {
        when_format_utc(text, at);
        text[10] = ' ';
        if (!exact)
            memcpy(text + 19, "Z", 2);
    } else {
        when_format_local(text, at);
        if (!exact)
            text[19] = '\0';
    }
    buf_str(b, text);
}

static void put_due(struct buf *b, int64_t ms)
{
    char text[WHEN_TEXT_SIZE];
    if (ms > 0)
        buf_printf(b, "in %s", when_format_rough(text, ms));
    else
        buf_printf(b, "%s late", when_format_rough(text, -ms));
}

void cell_put_plain(struct buf *b, const struct cell_style *style, const struct cell *cell,
                    unsigned max, bool exact)
{
    char text[WHEN_TEXT_SIZE];
    switch (cell->kind) {
    case CELL_NULL:
        buf_chr(b, '-');
        break;
    case CELL_TEXT:
    case CELL_BYTES:
        text_escape(b, cell->text, cell->len, max);
        break;
    case CELL_NUMBER:
        buf_u64(b, cell->number);
        buf_str(b, cell->capped ? "+" : "");
        break;
    case CELL_BOOL:
        buf_str(b, cell->number ? "yes" : "no");
        break;
    case CELL_REAL:
        buf_printf(b, "%.2f", cell->real);
        break;
    case CELL_TIME:
        cell_put_time(b, style, cell->at, exact);
        break;
    case CELL_DURATION:
        buf_str(b, when_format_rough(text, cell->at));
        break;
    case CELL_DUE:
        put_due(b, cell->at - style->now_at);
        break;
    }
}

void cell_put_json(struct buf *b, const struct cell_style *style, const char *name,
                   const struct cell *cell)
{
    char text[WHEN_TEXT_SIZE];
    if (cell->kind == CELL_BYTES) {
        json_put_bytes(b, name, cell->text, cell->len);
        return;
    }
    buf_printf(b, "\"%s\":", name);
    switch (cell->kind) {
    case CELL_NULL:
    case CELL_BYTES:
        buf_str(b, "null");
        break;
    case CELL_TEXT:
        json_put_string(b, cell->text, cell->len);
        break;
    case CELL_NUMBER:
        buf_u64(b, cell->number);
        break;
    case CELL_BOOL:
        buf_str(b, cell->number ? "true" : "false");
        break;
    case CELL_REAL:
        buf_printf(b, "%.3f", cell->real);
        break;
    case CELL_TIME:
        buf_printf(b, "\"%s\"", when_format_utc(text, cell->at));
        break;
    case CELL_DURATION:
        buf_printf(b, "%" PRId64, cell->at);
        break;
    case CELL_DUE:
        buf_printf(b, "%" PRId64, cell->at - style->now_at);
        break;
    }
}

void cell_put_escaped(struct buf *b, const char *p, size_t len)
{
    static const char hex[] = "0123456789abcdef";
    for (size_t i = 0, n; i < len; i += n) {
        uint32_t c = (unsigned char)p[i], character;
        n = text_utf8_next(p + i, len - i, &character);
        bool harmless = n > 0 && !text_char_unsafe(character);
        n = n > 0 ? n : 1;
        if (c == '\t' || c == '\n' || c == '\r' || c == '\\') {
            char shown = c == '\t' ? 't' : c == '\n' ? 'n' : c == '\r' ? 'r' : '\\';
            buf_add(b, (const char[]){'\\', shown}, 2);
        } else if (harmless) {
            buf_add(b, p + i, n);
        } else {
            for (size_t k = i; k < i + n; k++)
                buf_add(b, (const char[]){'\\', 'x', hex[(unsigned char)p[k] >> 4], hex[p[k] & 15]},
                        4);
        }
    }
}

void cell_put_tsv(struct buf *b, const struct cell_style *style, const struct cell *cell)
{
    char text[WHEN_TEXT_SIZE];
    switch (cell->kind) {
    case CELL_NULL:
        break;
    case CELL_TEXT:
    case CELL_BYTES:
        cell_put_escaped(b, cell->text, cell->len);
        break;
    case CELL_NUMBER:
    case CELL_BOOL:
        buf_u64(b, cell->number);
        break;
    case CELL_REAL:
        buf_printf(b, "%.3f", cell->real);
        break;
    case CELL_TIME:
        buf_str(b, when_format_utc(text, cell->at));
        break;
    case CELL_DURATION:
        buf_printf(b, "%" PRId64, cell->at);
        break;
    case CELL_DUE:
        buf_printf(b, "%" PRId64, cell->at - style->now_at);
        break;
    }
}

const char *cell_colour_code(enum cell_colour colour)
{
    static const char *const codes[] = {
        [CELL_PLAIN] = "",       [CELL_GOOD] = "\033[32m", [CELL_WARN] = "\033[33m",
        [CELL_BAD] = "\033[31m", [CELL_BUSY] = "\033[36m", [CELL_DIM] = "\033[2m"};
    return codes[colour];
}
