/*
 * cell.c - one value in each of the formats.
 *
 * Invariant: whatever the value contains, the plain form has no control character, JSON is
 * well-formed and TSV stays one field.
 */
#include "cli/show/cell.h"

#include "base/json.h"
#include "base/task.h"
#include "base/text.h"
#include "base/when.h"

#include <inttypes.h>
#include <stdio.h>
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

void cell_set_duration(struct cell *cell, int64_t ms)
{
    cell->kind = CELL_DURATION;
    cell->at = ms;
}

void cell_set_until(struct cell *cell, int64_t at)
{
    cell_set_time(cell, at);
    if (cell->kind != CELL_NULL)
        cell->kind = CELL_UNTIL;
}

void cell_set_since(struct cell *cell, int64_t at)
{
    cell_set_time(cell, at);
    if (cell->kind != CELL_NULL) {
        cell->kind = CELL_SINCE;
        cell->colour = CELL_WARN;
    }
}

void cell_set_bool(struct cell *cell, bool truth)
{
    cell->kind = CELL_BOOL;
    cell->number = truth;
}

struct buf *cell_buffer(void)
{
    static struct buf text = BUF_INIT;
    buf_reset(&text);
    return &text;
}

void cell_set_field(struct cell *cell, const struct column *c, const void *row)
{
    const void *p = (const char *)row + c->offset;
    uint64_t number;
    int outcome;

    switch (c->type) {
    case COLUMN_TEXT:
    case COLUMN_NAME:
    case COLUMN_TAG:
    case COLUMN_TAGS:
    case COLUMN_KEY:
        cell_set_text(cell, *(char *const *)p);
        break;
    case COLUMN_CHARS:
        cell_set_text(cell, *(const char *)p ? p : NULL);
        break;
    case COLUMN_BYTES:
        cell_set_bytes(cell, *(void *const *)p, *(const size_t *)((void *const *)p + 1));
        break;
    case COLUMN_TOKEN:
        cell_set_bytes(cell, ((const char *)p)[TASK_TOKEN_SIZE] ? p : NULL, TASK_TOKEN_SIZE);
        break;
    case COLUMN_TIME:
    case COLUMN_DUE:
        cell_set_time(cell, *(const int64_t *)p);
        break;
    case COLUMN_UNTIL:
        cell_set_time(cell, *(const int64_t *)p);
        if (cell->kind != CELL_NULL)
            cell->colour = CELL_WARN;
        if (cell->at == INT64_MAX)
            *cell = (struct cell){.kind = CELL_NULL, .colour = CELL_WARN, .people = "resumed"};
        break;
    case COLUMN_MS:
        cell_set_duration(cell, *(const int64_t *)p);
        break;
    case COLUMN_BOOL:
        cell_set_bool(cell, *(const bool *)p);
        break;
    case COLUMN_STATUS:
        cell_set_text(cell, task_status_name(*(const int *)p));
        break;
    case COLUMN_LEVEL:
        cell_set_text(cell, *(const int *)p ? task_level_names[*(const int *)p] : NULL);
        break;
    case COLUMN_OUTCOME:
        outcome = *(const int *)p;
        cell_set_text(cell, task_outcome_name(outcome));
        cell->colour = outcome == OUTCOME_DONE ? CELL_GOOD : CELL_BAD;
        break;
    default:
        if (column_number(c, row, &number))
            cell_set_number(cell, number);
    }
}

/* The cell seen from now: CELL_UNTIL and CELL_SINCE have become a duration, or nothing. */
static struct cell seen_now(const struct cell_style *style, const struct cell *cell)
{
    struct cell seen = *cell;
    if (cell->kind != CELL_UNTIL && cell->kind != CELL_SINCE)
        return seen;
    seen.at = cell->kind == CELL_UNTIL ? cell->at - style->now_at : style->now_at - cell->at;
    seen.kind =
        seen.at > 0 || (seen.at == 0 && cell->kind == CELL_SINCE) ? CELL_DURATION : CELL_NULL;
    return seen;
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

/* "15:04:05" today, else "11-21 15:04". */
static void put_brief_time(struct buf *b, const struct cell_style *style, int64_t at)
{
    BUF_LOCAL struct buf then = BUF_INIT, now = BUF_INIT;
    cell_put_time(&then, style, at, false);
    cell_put_time(&now, style, style->now_at, false);
    if (memcmp(then.data, now.data, strlen("2026-11-21")) == 0)
        buf_add(b, then.data + strlen("2026-11-21 "), strlen("15:04:05"));
    else
        buf_add(b, then.data + strlen("2026-"), strlen("11-21 15:04"));
}

void cell_put_plain(struct buf *b, const struct cell_style *style, const struct cell *cell,
                    unsigned max, bool exact)
{
    char text[WHEN_TEXT_SIZE];
    const struct cell seen = seen_now(style, cell);
    if (cell->people) {
        buf_str(b, cell->people);
        return;
    }
    switch (seen.kind) {
    case CELL_NULL:
    case CELL_UNTIL:
    case CELL_SINCE:
        buf_chr(b, '-');
        break;
    case CELL_TEXT:
    case CELL_BYTES:
    case CELL_JSON:
        text_escape(b, cell->text, cell->len, max);
        break;
    case CELL_NUMBER:
        buf_str(b, cell->sampled ? "~" : "");
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
        if (cell->brief && !exact)
            put_brief_time(b, style, cell->at);
        else
            cell_put_time(b, style, cell->at, exact);
        break;
    case CELL_DURATION:
        buf_str(b, cell->sampled ? "~" : "");
        buf_str(b, when_format_rough(text, seen.at));
        break;
    }
}

/* As JSON and TSV have it. */
static void put_number(struct buf *b, const struct cell *cell)
{
    if (cell->kind == CELL_NUMBER)
        buf_u64(b, cell->number);
    else if (cell->kind == CELL_BOOL)
        buf_str(b, cell->number ? "true" : "false");
    else if (cell->kind == CELL_REAL)
        buf_printf(b, "%.3f", cell->real);
    else if (cell->kind == CELL_DURATION)
        buf_printf(b, "%" PRId64, cell->at);
}

void cell_put_json(struct buf *b, const struct cell_style *style, const char *name,
                   const struct cell *cell)
{
    char text[WHEN_TEXT_SIZE];
    const struct cell seen = seen_now(style, cell);
    if (b->len && b->data[b->len - 1] != '{')
        buf_chr(b, ',');
    if (cell->kind == CELL_BYTES) {
        json_put_bytes(b, name, cell->text, cell->len);
        return;
    }
    buf_printf(b, "\"%s\":", name);
    switch (seen.kind) {
    case CELL_NULL:
    case CELL_BYTES:
    case CELL_UNTIL:
    case CELL_SINCE:
        buf_str(b, "null");
        break;
    case CELL_TEXT:
        json_put_string(b, cell->text, cell->len);
        break;
    case CELL_JSON:
        buf_add(b, cell->text, cell->len);
        break;
    case CELL_TIME:
        buf_printf(b, "\"%s\"", when_format_utc(text, cell->at));
        break;
    default:
        put_number(b, &seen);
    }
}

void cell_put_json_text(struct buf *b, const struct cell_style *style, const char *name,
                        const char *text)
{
    struct cell cell = {.kind = CELL_NULL};

    cell_set_text(&cell, text);
    cell_put_json(b, style, name, &cell);
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
    const struct cell seen = seen_now(style, cell);
    switch (seen.kind) {
    case CELL_TEXT:
    case CELL_BYTES:
    case CELL_JSON:
        cell_put_escaped(b, cell->text, cell->len);
        break;
    case CELL_TIME:
        buf_str(b, when_format_utc(text, cell->at));
        break;
    default:
        put_number(b, &seen);
    }
}

enum cell_colour cell_colour(const struct cell_style *style, const struct cell *cell)
{
    return cell->people || seen_now(style, cell).kind != CELL_NULL ? cell->colour : CELL_PLAIN;
}

const char *cell_colour_code(enum cell_colour colour)
{
    static const char *const codes[] = {
        [CELL_PLAIN] = "",       [CELL_GOOD] = "\033[32m",   [CELL_WARN] = "\033[33m",
        [CELL_BAD] = "\033[31m", [CELL_BUSY] = "\033[1;36m", [CELL_DIM] = "\033[2m"};
    return codes[colour];
}

void cell_put_count(struct buf *b, uint64_t count)
{
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%" PRIu64, count);

    for (int i = 0; i < len; i++) {
        if (i && (len - i) % 3 == 0)
            buf_chr(b, ',');
        buf_chr(b, digits[i]);
    }
}
