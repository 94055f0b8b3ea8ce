/*
 * lines.c - any bytes as the lines of dq add --from (NDJSON, TSV, CSV) and of dq import give
 * checked tasks or error messages.
 */
#include "cli/many/bulk_line.h"
#include "cli/many/transfer.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

/* The parser asks for the clock through these; here it stands still. */
int cmd_now(struct cmd_context *c, int64_t *ret_at, struct err *err)
{
    (void)c;
    (void)err;
    *ret_at = INT64_C(1795176000000);
    return 0;
}

bool cmd_time_is_relative(const char *text)
{
    (void)text;
    return true;
}

static void check(const struct bulk_line *item, const struct buf *arena)
{
    if (item->tag >= arena->len || item->body > arena->len ||
        item->body + item->task.body_size > arena->len)
        abort();
    if (task_check_tag(arena->data + item->tag, strlen(arena->data + item->tag), NULL) < 0)
        abort();
    if (item->has_key &&
        task_check_key(arena->data + item->key, strlen(arena->data + item->key), NULL) < 0)
        abort();
    if (item->task.delay_ms < 0)
        abort();
}

/* The same line for dq import: what is read is written so that it is read the same. */
static void try_transfer(struct json_reader *r, const char *line, size_t len)
{
    struct task t, again;
    struct task_attempt a;
    struct err err = {0};

    if (transfer_read_task(r, line, len, &t, &err) == 0) {
        struct buf b = BUF_INIT;
        transfer_put_task(&b, &t);
        buf_chr(&b, '}');
        if (transfer_read_task(r, b.data, b.len, &again, &err) < 0 || again.id != t.id ||
            again.expected_at != t.expected_at || again.body_size != t.body_size)
            abort();
        task_done(&again);
        buf_done(&b);
    }
    task_done(&t);
    uint64_t next_id;
    (void)!transfer_read_begin(r, line, len, &next_id, &err);
    (void)!transfer_read_end(r, line, len, &(struct transfer_end){0, 0}, &err);
    (void)!transfer_read_attempt(r, line, len, &a, &err);
    free(a.host);
    free(a.error);
    free(a.output);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct cmd_context context = {.now_at = 0};
    struct bulk_line_parser parser;
    struct buf arena = BUF_INIT;
    const char *p = (const char *)bytes, *end = p + len;

    if (len == 0)
        return 0;
    bulk_line_init(&parser, &context,
                   *p == '{'   ? BULK_LINE_NDJSON
                   : *p == ',' ? BULK_LINE_CSV
                               : BULK_LINE_TSV);
    p++;
    p = parser.format == BULK_LINE_NDJSON ? (const char *)bytes : p;
    (void)bulk_line_is_csv(p, (size_t)(end - p));
    for (bool first = true; p < end; first = false) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        size_t size = (size_t)((newline ? newline : end) - p);
        struct bulk_line item = {.line = 1};
        struct err err = {0};
        int rc = first ? bulk_line_heading(&parser, p, size, &err) : 0;

        if (parser.json)
            try_transfer(parser.json, p, size);
        if (rc == 0 && size > 0)
            rc = bulk_line_parse(&parser, p, size, &arena, &item, &err);
        else if (rc == 0)
            rc = 1;
        if (rc == 0)
            check(&item, &arena);
        else if (rc < 0 && (rc != ERR_DATA || err.text[0] == '\0'))
            abort();
        p += size + 1;
    }
    bulk_line_done(&parser);
    buf_done(&arena);
    return 0;
}
