/*
 * verdict.c - any bytes as the output of a batch handler, in pieces of any length, give verdicts or
 * nothing, and memory stays bounded.
 */
#include "runner/verdict.h"

#include "runner/capture.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static struct json_reader *reader;

static void take(void *ctx, const char *line, size_t len, bool whole)
{
    struct verdict v;
    struct err err = {0};
    size_t *total = ctx;

    *total += len;
    if (len > CAPTURE_LINE_MAX)
        abort();
    if (!whole)
        return;
    if (verdict_parse(reader, line, len, &v, &err) < 0) {
        size_t at = 0, before = 0;

        if (err.code != ERR_DATA || err.text[0] == '\0')
            abort();
        (void)verdict_is_meant(line, len);
        while (verdict_next_id(line, len, &at) != 0) {
            if (at <= before || at > len)
                abort();
            before = at;
        }
        return;
    }
    if (v.id > INT64_MAX || v.result > VERDICT_SNOOZE || v.after_ms < -1 ||
        v.after_ms > VERDICT_AFTER_MOST_MS ||
        (v.after_ms >= 0 && v.result != VERDICT_RETRY && v.result != VERDICT_SNOOZE))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct lines lines = {0};
    struct capture tail;
    size_t total = 0, at = 0, kept;

    if (!reader)
        reader = json_reader_new();
    capture_init(&tail, 64);
    while (at < len) {
        size_t n = 1 + bytes[at] % 61;

        n = n < len - at ? n : len - at;
        lines_add(&lines, (const char *)bytes + at, n, take, &total);
        capture_add(&tail, (const char *)bytes + at, n);
        at += n;
    }
    lines_finish(&lines, take, &total);
    lines_done(&lines);
    (void)capture_tail(&tail, &kept);
    if (total > len || kept > 64)
        abort();
    capture_done(&tail);
    return 0;
}
