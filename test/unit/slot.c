/* What becomes of the slots of a schedule: each row is a test. */
#include "base/slot.h"
#include "base/task.h"
#include "base/when.h"
#include "base/when_parse.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "table_rows.h"

#define MIDNIGHT (INT64_C(20000) * WHEN_DAY)

static int64_t read_time(const char *text)
{
    int64_t ms = 0;
    struct err err;

    if (!text || !strcmp(text, "none"))
        return TASK_TIME_NONE;
    if (when_parse_duration(text, &ms, &err))
        print_error("%s\n", err.text);
    return MIDNIGHT + ms;
}

static void put_time(struct buf *b, const char *before, int64_t at)
{
    char text[WHEN_TEXT_SIZE], *from;
    int64_t ms = at - MIDNIGHT, hours = ms / WHEN_HOUR;

    if (at == TASK_TIME_NONE) {
        buf_printf(b, "%snone", before);
        return;
    }
    /* hours are not made days */
    when_format_duration(text, ms % WHEN_HOUR);
    from = strcmp(text, "0s") || !hours ? text : text + 2;
    if (hours || !ms)
        buf_printf(b, "%s%" PRId64 "h%s", before, hours, ms ? from : "");
    else
        buf_printf(b, "%s%s", before, from);
}

/* 0: none, or the first one. */
static int number_of(const char *const names[], const char *word)
{
    for (int i = 0; names[i]; i++)
        if (!strcmp(names[i], word))
            return i;
    return 0;
}

static bool read_settings(char *text, struct slot_ask *a)
{
    *a = (struct slot_ask){
        .catch_up = SLOT_CATCH_UP_LATEST, .from_at = TASK_TIME_NONE, .to_at = TASK_TIME_NONE};
    for (char *word; (word = strsep(&text, " "));) {
        if (!strcmp(word, "paused"))
            a->paused = true;
        else if (!strcmp(word, "no-catch-up"))
            a->catch_up = SLOT_CATCH_UP_SKIP;
        else if (number_of(slot_catch_up_names, word) > 0)
            a->catch_up = number_of(slot_catch_up_names, word);
        else if (number_of(slot_overlap_names, word) > 0)
            a->overlap = number_of(slot_overlap_names, word);
        else if (!strncmp(word, "within=", 7))
            a->within_ms = read_time(word + 7) - MIDNIGHT;
        else if (!strncmp(word, "spread=", 7))
            a->offset_ms = read_time(word + 7) - MIDNIGHT;
        else if (!strncmp(word, "from=", 5))
            a->from_at = read_time(word + 5);
        else if (!strncmp(word, "to=", 3))
            a->to_at = read_time(word + 3);
        else if (strcmp(word, "-") != 0)
            return false;
    }
    return true;
}

static bool read_last(char *text, struct slot_run *r)
{
    static const char *const names[] = {"-", "waits", "runs", "ended"};
    const char *life = strsep(&text, " ");

    *r = (struct slot_run){.until_at = TASK_TIME_NONE};
    for (int i = 0; i < 4; i++) {
        if (strcmp(names[i], life) != 0)
            continue;
        r->life = (enum slot_life)i;
        *(r->life == SLOT_WAITS ? &r->until_at : &r->ended_at) = read_time(text);
        return true;
    }
    return false;
}

static void put_acts(struct buf *b, const struct slot_plan *p)
{
    for (size_t i = 0; i < p->count; i++) {
        const struct slot_act *act = &p->acts[i];

        buf_printf(b, "%s%s ", i ? ", " : "", slot_decision_name(act->decision));
        put_time(b, "", act->at);
        if (act->slots > 1)
            buf_printf(b, " x%" PRIu32, act->slots);
        if (act->missed)
            buf_printf(b, " missed=%" PRIu32, act->missed);
        if (act->decision <= SLOT_LATE && act->due_at != act->at)
            put_time(b, " due ", act->due_at);
        if (act->expires_at != TASK_TIME_NONE)
            put_time(b, " till ", act->expires_at);
    }
    buf_str(b, p->count ? "" : "-");
}

static bool check_row(char **cell, const char *where)
{
    const char *kind = strsep(&cell[1], " "), *next;
    struct timetable_spec spec = {.kind = strcmp(kind, "every") ? TIMETABLE_GAP : TIMETABLE_EVERY,
                                  .expression = cell[1],
                                  .from_at = TASK_TIME_NONE};
    struct buf acts = BUF_INIT, then = BUF_INIT;
    struct slot_plan plan = {0};
    struct slot_ask a;
    struct err err;

    if (!read_settings(cell[2], &a) || !read_last(cell[3], &a.last)) {
        print_error("%s: malformed row\n", where);
        return false;
    }
    a.kind = spec.kind;
    spec.to_at = a.to_at;
    struct timetable *t = timetable_new(&spec, &err);
    a.timetable = t;
    next = strsep(&cell[4], " ");
    a.next_at = read_time(next);
    a.missed = (uint32_t)strtoul(cell[4], NULL, 10);
    a.now_at = read_time(cell[5]);
    slot_decide(&a, &plan);
    put_acts(&acts, &plan);
    put_time(&then, "", plan.next_at);
    buf_printf(&then, " %" PRIu32 "%s", plan.missed, plan.cancels ? " cancels" : "");
    bool right = !strcmp(acts.data, cell[6]) && !strcmp(then.data, cell[7]);
    if (!right)
        print_error("%s: %s | %s\n", where, acts.data, then.data);
    slot_plan_done(&plan);
    timetable_free(t);
    buf_done(&acts);
    buf_done(&then);
    return right;
}

/* A year of minutes. */
static void all_catches_up_a_thousand_at_most(void **state)
{
    struct timetable_spec spec = {TIMETABLE_EVERY, "1m", NULL, TASK_TIME_NONE, TASK_TIME_NONE};
    struct slot_ask a = {.kind = TIMETABLE_EVERY,
                         .catch_up = SLOT_CATCH_UP_ALL,
                         .next_at = MIDNIGHT,
                         .now_at = MIDNIGHT + 2000 * WHEN_MINUTE + WHEN_MINUTE / 2};
    struct slot_plan plan = {0};
    struct err err;
    (void)state;

    struct timetable *t = timetable_new(&spec, &err);
    a.timetable = t;
    slot_decide(&a, &plan);
    /* the last one is in time, the one before it is missed by half a minute */
    assert_int_equal(plan.count, 1 + SLOT_CATCH_UP_MOST + 1);
    assert_int_equal(plan.acts[0].slots, 1000);
    assert_int_equal(plan.acts[0].decision, SLOT_SKIPPED_MISSED);
    assert_int_equal(plan.acts[1].decision, SLOT_LATE);
    assert_int_equal(plan.acts[1].missed, 1000);
    assert_int_equal(plan.acts[1000].decision, SLOT_LATE);
    assert_int_equal(plan.acts[1000].due_at - a.now_at, WHEN_MINUTE * 999 / 1000);
    assert_int_equal(plan.acts[1001].decision, SLOT_SKIPPED_OVERLAP);
    slot_plan_done(&plan);
    timetable_free(t);
}

static void a_key_has_milliseconds_if_there_are_any(void **state)
{
    struct buf b = BUF_INIT;
    (void)state;

    slot_put_key(&b, "a@b", MIDNIGHT);
    assert_string_equal(b.data, "a@b@2024-10-04T00:00:00Z");
    buf_reset(&b);
    slot_put_key(&b, "n", MIDNIGHT + 50);
    assert_string_equal(b.data, "n@2024-10-04T00:00:00.050Z");
    buf_done(&b);
}

static void a_name_has_its_own_place_in_a_spread(void **state)
{
    int64_t offset = slot_offset_ms("backup", WHEN_HOUR);
    (void)state;

    assert_in_range(offset, 0, WHEN_HOUR - 1);
    assert_true(offset == slot_offset_ms("backup", WHEN_HOUR));
    assert_true(offset != slot_offset_ms("backup2", WHEN_HOUR));
    assert_int_equal(slot_offset_ms("backup", 0), 0);
}

static void numbers_have_names(void **state)
{
    (void)state;
    assert_string_equal(slot_catch_up_name(SLOT_CATCH_UP_ALL), "all");
    assert_string_equal(slot_catch_up_name(SLOT_CATCH_UP_ALL + 1), "unknown");
    assert_string_equal(slot_overlap_name(SLOT_OVERLAP_REPLACE), "replace");
    assert_string_equal(slot_overlap_name(SLOT_OVERLAP_REPLACE + 1), "unknown");
    assert_string_equal(slot_decision_name(SLOT_BY_HAND), "by-hand");
    assert_string_equal(slot_decision_name(SLOT_BY_HAND + 1), "unknown");
    assert_string_equal(slot_kind_name(TIMETABLE_GAP), "gap");
    assert_string_equal(slot_kind_name(-1), "unknown");
}

int main(void)
{
    const struct CMUnitTest others[] = {
        cmocka_unit_test(all_catches_up_a_thousand_at_most),
        cmocka_unit_test(a_key_has_milliseconds_if_there_are_any),
        cmocka_unit_test(a_name_has_its_own_place_in_a_spread),
        cmocka_unit_test(numbers_have_names),
    };
    return table_run_rows("slots.tbl", 8, check_row, others, sizeof others / sizeof others[0]);
}
