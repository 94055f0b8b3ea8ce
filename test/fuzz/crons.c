/*
 * crons.c - any text as a cron expression is refused with a message, or has slots that ascend and a
 * sentence; any text as a crontab gives entries whose expressions are taken.
 */
#include "base/cron.h"
#include "base/task.h"
#include "base/timetable.h"
#include "conf/crontab.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define AFTER_AT INT64_C(1795176000000)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void try_expression(const char *text, const char *zone)
{
    const struct timetable_spec spec = {TIMETABLE_CRON, text, zone, TASK_TIME_NONE, TASK_TIME_NONE};
    struct err err = {0};
    struct timetable *t = timetable_new(&spec, &err);
    struct buf b = BUF_INIT;
    int64_t at = AFTER_AT, next, again;

    if (!t) {
        if (err.code != ERR_DATA || !err.text[0])
            abort();
        return;
    }
    for (int i = 0; i < 20; i++, at = next)
        if (!timetable_next(t, at, &next, NULL) || next <= at ||
            !timetable_next(t, next - 1, &again, NULL) || again != next)
            abort();
    if (timetable_period_ms(t, at) <= 0)
        abort();
    timetable_put(&b, t);
    if (!b.len)
        abort();
    buf_done(&b);
    timetable_free(t);
}

static void try_crontab(const char *text, size_t len, bool has_user)
{
    struct crontab tab;
    struct cron cron;

    crontab_read(text, len, has_user, &tab);
    for (size_t i = 0; i < tab.count; i++) {
        const struct crontab_entry *e = &tab.entries[i];
        if (e->verdict == CRONTAB_REFUSED ? !e->note
                                          : cron_parse(e->expression, &cron, NULL) || !*e->name)
            abort();
    }
    crontab_done(&tab);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    char *text = malloc(len + 1);

    if (!text)
        abort();
    if (len)
        memcpy(text, bytes, len);
    text[len] = '\0';
    try_expression(text, len % 2 ? "Europe/Berlin" : "Australia/Lord_Howe");
    try_crontab(text, len, len % 2);
    free(text);
    return 0;
}
