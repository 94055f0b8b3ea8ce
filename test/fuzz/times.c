/*
 * times.c - any text as a duration or an instant gives a number that survives being written and
 * read again, or an error message.
 */
#include "base/when.h"
#include "base/when_parse.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define NOW_AT INT64_C(1795176000000)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void try_duration(const char *text)
{
    struct err err = {0};
    char again[WHEN_TEXT_SIZE];
    int64_t ms = -1, same = -1;

    if (when_parse_duration(text, &ms, &err) < 0) {
        if (err.code != ERR_DATA || err.text[0] == '\0' || ms != -1)
            abort();
        return;
    }
    if (ms < 0 || ms > WHEN_MAX_DURATION_MS ||
        when_parse_duration(when_format_duration(again, ms), &same, &err) < 0 || same != ms)
        abort();
    when_format_rough(again, ms);
}

static void try_instant(const char *text)
{
    struct err err = {0};
    char again[WHEN_TEXT_SIZE];
    int64_t at = -1, same = -1;

    if (when_parse_instant(text, NOW_AT, &at, &err) < 0) {
        if (err.code != ERR_DATA || err.text[0] == '\0' || at != -1)
            abort();
        return;
    }
    if (when_parse_instant(when_format_utc(again, at), NOW_AT, &same, &err) < 0 || same != at)
        abort();
    if (when_parse_sql(when_format_sql(again, at), &same, &err) < 0 || same != at)
        abort();
    when_format_local(again, at);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    char text[257];
    int64_t at;

    if (len > sizeof text - 1)
        return 0;
    if (len)
        memcpy(text, bytes, len);
    text[len] = '\0';
    setenv("TZ", len % 2 ? "Europe/Berlin" : "Australia/Lord_Howe", 1);
    try_duration(text);
    try_instant(text);
    (void)!when_parse_sql(text, &at, NULL);
    return 0;
}
