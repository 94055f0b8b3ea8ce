/* When something is open: each row is a test; and random windows in zones whose clocks change,
 * compared with those of the C library. The number of steps is the argument, in thousands; the seed
 * is the second one. */
#include "base/hours.h"
#include "base/when.h"
#include "base/when_parse.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/param.h>
#include <time.h>
#include <cmocka.h>

#include "table_rows.h"

static void put_until(struct buf *b, const struct hours *h, int64_t at)
{
    char text[WHEN_TEXT_SIZE];
    int64_t next = hours_next(h, at);

    when_format_ahead(text, next, 0);
    text[strcspn(text, "+")] = '\0';
    buf_printf(b, "%s %s%s", hours_open(h, at) ? "open" : "closed",
               next == INT64_MAX ? "never" : text, next == INT64_MAX ? "" : "Z");
}

static bool check_row(char **cell, const char *where)
{
    BUF_LOCAL struct buf until = BUF_INIT, text = BUF_INIT;
    struct hours *h = NULL;
    struct err err;
    int64_t at = 0;

    for (char *c = cell[1]; *c; c++)
        *c = *c == ';' ? '\n' : *c;
    if (hours_parse(cell[1], strcmp(cell[2], "-") ? cell[2] : NULL, &h, &err)) {
        buf_str(&until, err.text);
        buf_str(&text, "");
    } else {
        assert_int_equal(when_parse_instant(cell[3], 0, &at, &err), 0);
        put_until(&until, h, at);
        hours_put(&text, h, ";");
    }
    hours_free(h);
    bool right = !strcmp(until.data, cell[4]) && !strcmp(text.data, cell[5]);
    if (!right)
        print_error("%s: %s | %s\n", where, until.data, text.data);
    return right;
}

static void the_next_opening_is_told_by_the_clock_of_its_window(void **state)
{
    struct hours *h = NULL;
    struct buf b = BUF_INIT;
    struct err err;
    int64_t at = 0;
    (void)state;

    assert_int_equal(
        hours_parse("Sat 10:00-12:00 UTC\nMon-Fri 08:00-18:00 Europe/Berlin", NULL, &h, &err), 0);
    assert_int_equal(when_parse_instant("2026-11-28T12:00:00Z", 0, &at, &err), 0);
    hours_put_opening(&b, h, at);
    assert_string_equal(b.data, "Mon 08:00 Europe/Berlin");
    hours_free(h);
    buf_done(&b);
}

static void at_most_32_windows_are_taken(void **state)
{
    struct buf b = BUF_INIT;
    struct hours *h = NULL;
    struct err err;
    (void)state;

    for (int i = 0; i < 32; i++)
        buf_str(&b, i ? "\n08:00-09:00" : "08:00-09:00");
    assert_int_equal(hours_parse(b.data, "UTC", &h, &err), 0);
    hours_free(h);
    buf_str(&b, "\n08:00-09:00");
    assert_int_equal(hours_parse(b.data, "UTC", &h, &err), ERR_DATA);
    assert_string_equal(err.text, "hours have at most 32 windows");
    buf_done(&b);
}

/* ---- random windows */

static uint64_t steps = 1000000, seed = 1;

static uint64_t any(uint64_t below)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (seed >> 33) % below;
}

struct rule {
    bool day[7]; /* from Sunday on, as struct tm has it */
    int from, to;
};

/* As a person reads a clock on the wall. */
static bool rule_open(const struct rule *r, int64_t at)
{
    time_t seconds = (time_t)(at / 1000);
    struct tm tm;

    localtime_r(&seconds, &tm);
    int minute = tm.tm_hour * 60 + tm.tm_min;
    if (r->from < r->to)
        return r->day[tm.tm_wday] && minute >= r->from && minute < r->to;
    return minute >= r->from ? r->day[tm.tm_wday] : minute < r->to && r->day[(tm.tm_wday + 6) % 7];
}

static bool rules_open(const struct rule *r, size_t n, int64_t at)
{
    for (size_t i = 0; i < n; i++)
        if (rule_open(&r[i], at))
            return true;
    return false;
}

static void any_rule(struct rule *r, struct buf *b)
{
    static const char *const names[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    const char *comma = "";
    bool some = false;

    while (!some)
        for (int i = 0; i < 7; i++)
            some |= r->day[i] = any(2);
    for (int i = 0; i < 7; i++)
        if (r->day[i]) {
            buf_printf(b, "%s%s", comma, names[i]);
            comma = ",";
        }
    do {
        r->from = (int)any(any(2) ? 1440 : 240);
        r->to = (int)any(any(2) ? 1441 : 240);
    } while (r->from == r->to);
    buf_printf(b, " %02d:%02d-%02d:%02d", r->from / 60, r->from % 60, r->to / 60, r->to % 60);
}

/* Walks from one instant to a later one, and looks closely at each that hours_next names. */
static void walk(const struct hours *h, const struct rule *r, size_t n, uint64_t count)
{
    int64_t at = (int64_t)(any(2) ? 0 : any(2000)) * 26 * WHEN_DAY / 2, until = at;
    bool open = false;

    for (uint64_t i = 0; i < count; i++) {
        if (at >= until) {
            if (until > 0 && i) {
                assert_int_equal(rules_open(r, n, until), !open);
                assert_int_equal(rules_open(r, n, until - 1), open);
            }
            at = MAX(at, until);
            open = rules_open(r, n, at);
            until = hours_next(h, at);
        }
        assert_int_equal(hours_open(h, at), open);
        assert_int_equal(rules_open(r, n, at), open);
        int64_t step = (int64_t)any((uint64_t)(any(8) ? 20 * WHEN_MINUTE : 9 * WHEN_HOUR)) + 1;
        at = MIN(at + step, until);
    }
}

static void random_windows_open_as_a_clock_on_the_wall_says(void **state)
{
    static const char *const zones[] = {
        "Europe/Berlin",     "America/New_York",  "Australia/Lord_Howe",  "Asia/Kolkata",
        "America/Sao_Paulo", "Africa/Casablanca", "Pacific/Apia",         "Antarctica/Troll",
        "Asia/Tehran",       "America/Havana",    "America/Scoresbysund", "UTC"};
    char *before = getenv("TZ");
    (void)state;

    before = before ? strdup(before) : NULL;
    steps /= getenv("DQ_TEST_SHORT") ? 10 : 1; /* memcheck is slow */
    for (uint64_t done = 0; done < steps; done += 2000) {
        struct rule rules[3] = {0};
        const char *zone = zones[any(sizeof zones / sizeof zones[0])];
        BUF_LOCAL struct buf text = BUF_INIT, canonical = BUF_INIT, again = BUF_INIT;
        size_t n = any(3) + 1;
        struct hours *h = NULL, *same = NULL;
        struct err err;

        for (size_t i = 0; i < n; i++) {
            buf_str(&text, i ? "\n" : "");
            any_rule(&rules[i], &text);
        }
        assert_int_equal(hours_parse(text.data, zone, &h, &err), 0);
        hours_put(&canonical, h, "\n");
        assert_int_equal(hours_parse(canonical.data, NULL, &same, &err), 0);
        hours_put(&again, same, "\n");
        assert_string_equal(again.data, canonical.data);
        setenv("TZ", zone, 1);
        tzset();
        walk(same, rules, n, 2000);
        hours_free(h);
        hours_free(same);
    }
    before ? setenv("TZ", before, 1) : unsetenv("TZ");
    free(before);
    tzset();
}

int main(int argc, char **argv)
{
    const struct CMUnitTest others[] = {
        cmocka_unit_test(the_next_opening_is_told_by_the_clock_of_its_window),
        cmocka_unit_test(at_most_32_windows_are_taken),
        cmocka_unit_test(random_windows_open_as_a_clock_on_the_wall_says),
    };

    if (argc > 1)
        steps = strtoull(argv[1], NULL, 10) * 1000;
    if (argc > 2)
        seed = strtoull(argv[2], NULL, 10);
    return table_run_rows("hours.tbl", 6, check_row, others, sizeof others / sizeof others[0]);
}
