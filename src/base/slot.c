/*
 * slot.c - see slot.h.
 */
#include "base/slot.h"

#include "base/when.h"

#include <string.h>

#define COUNT(names) (sizeof(names) / sizeof(names)[0])

static const char *const catch_ups[] = {"skip", "latest", "all"};
static const char *const overlaps[] = {"skip", "one", "allow", "replace"};
static const char *const kinds[] = {"cron", "every", "gap"};
static const char *const decisions[] = {
    [SLOT_RAN] = "ran",
    [SLOT_LATE] = "late",
    [SLOT_SKIPPED_OVERLAP] = "skipped-overlap",
    [SLOT_SKIPPED_MISSED] = "skipped-missed",
    [SLOT_SKIPPED_PAUSED] = "skipped-paused",
    [SLOT_REFUSED] = "refused",
    [SLOT_BY_HAND] = "by-hand",
};

static const char *name_of(const char *const names[], size_t count, int number)
{
    return number >= 0 && (size_t)number < count ? names[number] : "unknown";
}

static int number_of(const char *const names[], size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(names[i], name))
            return (int)i;
    return -1;
}

const char *slot_catch_up_name(int number)
{
    return name_of(catch_ups, COUNT(catch_ups), number);
}

int slot_catch_up_parse(const char *name)
{
    return number_of(catch_ups, COUNT(catch_ups), name);
}

const char *slot_overlap_name(int number)
{
    return name_of(overlaps, COUNT(overlaps), number);
}

int slot_overlap_parse(const char *name)
{
    return number_of(overlaps, COUNT(overlaps), name);
}

const char *slot_decision_name(int number)
{
    return name_of(decisions, COUNT(decisions), number);
}

const char *slot_kind_name(int number)
{
    return name_of(kinds, COUNT(kinds), number);
}

void slot_put_key(struct buf *b, const char *name, int64_t slot_at)
{
    char text[WHEN_TEXT_SIZE];
    const size_t seconds = strlen("2026-11-23T07:00:00");

    when_format_utc(text, slot_at);
    if (!strcmp(text + seconds, ".000Z"))
        strcpy(text + seconds, "Z");
    buf_printf(b, "%s@%s", name, text);
}
