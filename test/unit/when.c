/* Durations and instants: the tables of test/data, and properties that no table can hold. */
#include "base/when.h"
#include "base/when_parse.h"
#include "base/zone.h"
#include "base/zone_rule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "table.h"

#include <inttypes.h>
#include <time.h>

/* "! part" expects a refusal whose text contains the part. True: it was one, and that is
 * settled. */
static bool refused(const char *expected, int rc, const struct err *err, const char *where,
                    bool *ret_fine)
{
    bool wanted = *expected == '!';

    if (!wanted && !rc)
        return false;
    *ret_fine =
        wanted && rc == ERR_DATA && err->code == ERR_DATA && strstr(err->text, expected + 2);
    if (!*ret_fine)
        print_error("%s: got \"%s\", expected \"%s\"\n", where, rc ? err->text : "no error",
                    expected);
    return true;
}

static void set_zone(const char *zone)
{
    setenv("TZ", zone, 1);
    tzset();
}

static bool check_duration(char **cell, const char *where)
{
    struct err err = {0};
    char text[WHEN_TEXT_SIZE];
    int64_t ms = -7;
    bool fine;

    int rc = when_parse_duration(cell[0], &ms, &err);
    if (refused(cell[1], rc, &err, where, &fine))
        return fine && ms == -7;
    when_format_duration(text, ms);
    if (ms == atoll(cell[1]) && !strcmp(text, cell[2]))
        return true;
    print_error("%s: got %" PRId64 " ms, \"%s\"\n", where, ms, text);
    return false;
}

static void durations_are_read_exactly_or_refused(void **state)
{
    (void)state;
    assert_true(table_check("durations.tbl", 3, check_duration));
}

static void a_duration_written_is_read_back(void **state)
{
    struct err err;
    char text[WHEN_TEXT_SIZE];
    uint64_t random = 1;

    (void)state;
    for (int i = 0; i < 100000; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        int64_t ms = (int64_t)(random >> 24) % (WHEN_MAX_DURATION_MS >> (i % 38)), back;
        assert_int_equal(when_parse_duration(when_format_duration(text, ms), &back, &err), 0);
        assert_int_equal(back, ms);
    }
    assert_string_equal(when_format_duration(text, -90061001), "-1d1h1m1.001s");
    assert_string_equal(when_format_duration(text, -5), "-5ms");
    assert_string_equal(when_format_duration(text, INT64_MIN), "-106751991167d7h12m55.808s");
}

static void rough_durations_have_two_parts_at_most(void **state)
{
    static const struct {
        int64_t ms;
        const char *text;
    } rows[] = {
        {0, "0s"},
        {7, "7ms"},
        {999, "999ms"},
        {1250, "1.25s"},
        {1254, "1.25s"},
        {1255, "1.26s"},
        {9996, "10s"},
        {12340, "12.3s"},
        {59960, "1m"},
        {12 * WHEN_MINUTE + 5400, "12m5s"},
        {59 * WHEN_MINUTE + 59500, "1h"},
        {3 * WHEN_HOUR + 12 * WHEN_MINUTE + 29999, "3h12m"},
        {WHEN_DAY - 1, "1d"},
        {3 * WHEN_DAY + 4 * WHEN_HOUR + 29 * WHEN_MINUTE, "3d4h"},
        {-1250, "-1.25s"},
        {-59960, "-1m"},
        {INT64_MAX, "106751991167d7h"},
        {INT64_MIN, "-106751991167d7h"},
    };
    char text[WHEN_TEXT_SIZE];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_string_equal(when_format_rough(text, rows[i].ms), rows[i].text);
}

static bool check_instant(char **cell, const char *where)
{
    struct err err = {0};
    char text[WHEN_TEXT_SIZE], local[WHEN_TEXT_SIZE];
    int64_t now_at, at = -7, back;
    bool fine;

    set_zone(cell[0]);
    if (when_parse_instant(cell[1], 0, &now_at, &err)) {
        print_error("%s: now: %s\n", where, err.text);
        return false;
    }
    bool past = !strncmp(cell[2], "past: ", 6);
    int rc = past ? when_parse_past(cell[2] + 6, now_at, &at, &err)
                  : when_parse_instant(cell[2], now_at, &at, &err);
    if (refused(cell[3], rc, &err, where, &fine))
        return fine && at == -7;
    if (strcmp(when_format_utc(text, at), cell[3])) {
        print_error("%s: got %s, expected %s\n", where, text, cell[3]);
        return false;
    }
    /* What is shown can be pasted. The last hours of 9999 are shown as 10000 east of Greenwich. */
    if (strlen(when_format_local(local, at)) < 32 &&
        (when_parse_instant(local, 0, &back, &err) || back != at)) {
        print_error("%s: %s is not read back\n", where, local);
        return false;
    }
    return true;
}

static void instants_are_read_exactly_or_refused(void **state)
{
    (void)state;
    assert_true(table_check("instants.tbl", 4, check_instant));
}

static void both_readings_of_a_clock_change_can_be_pasted(void **state)
{
    struct err err, ignored;
    int64_t at, first, second;

    (void)state;
    set_zone("Europe/Berlin");
    assert_int_equal(when_parse_instant("2026-10-25 02:30", 0, &at, &err), ERR_DATA);
    char *one = strstr(err.text, "write ") + strlen("write "), *two = strstr(one, " or ");
    *two = '\0';
    two += strlen(" or ");
    assert_int_equal(when_parse_instant(one, 0, &first, &ignored), 0);
    assert_int_equal(when_parse_instant(two, 0, &second, &ignored), 0);
    assert_int_equal(second - first, WHEN_HOUR);
}

/* The C library's gmtime_r is right for reading, whatever mktime does. */
static void every_date_agrees_with_the_c_library(void **state)
{
    struct err err;
    char text[WHEN_TEXT_SIZE], expected[64];
    int64_t at, back, last;

    (void)state;
    assert_int_equal(when_parse_sql("1000-01-01 00:00:00", &at, &err), 0);
    assert_int_equal(when_parse_sql("9999-12-31 23:59:59", &last, &err), 0);
    for (; at <= last; at += 3 * WHEN_DAY + WHEN_HOUR + 61001) {
        time_t seconds = (time_t)((at - ((at % 1000) + 1000) % 1000) / 1000);
        struct tm tm;
        gmtime_r(&seconds, &tm);
        snprintf(expected, sizeof expected, "%04d-%02d-%02d %02d:%02d:%02d.%03d", tm.tm_year + 1900,
                 tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec,
                 (int)(((at % 1000) + 1000) % 1000));
        assert_string_equal(when_format_sql(text, at), expected);
        assert_int_equal(when_parse_sql(text, &back, &err), 0);
        assert_int_equal(back, at);
    }
}

/* A local time without its offset names the instant it came from, or is refused, and then with that
 * instant among the readings. */
static void check_local_time(int64_t at)
{
    struct err err = {0};
    char zoned[WHEN_TEXT_SIZE], local[24], *space;
    int64_t back;

    when_format_local(zoned, at);
    snprintf(local, sizeof local, "%.23s", zoned);
    if (!when_parse_instant(local, 0, &back, &err)) {
        assert_int_equal(back, at);
        return;
    }
    assert_non_null(strstr(err.text, "shows this twice"));
    space = strrchr(zoned, ' ');
    memmove(space, space + 1, strlen(space));
    zoned[10] = 'T';
    char *millis = strstr(zoned, ".000");
    if (millis)
        memmove(millis, millis + 4, strlen(millis + 4) + 1);
    assert_non_null(strstr(err.text, zoned));
}

static void local_times_name_one_instant_or_are_refused(void **state)
{
    static const char *const zones[] = {
        "Europe/Berlin",    "America/New_York", "Australia/Lord_Howe", "Pacific/Apia",
        "America/St_Johns", "Asia/Kathmandu",   "Africa/Casablanca",   "UTC"};
    uint64_t random = 42;

    (void)state;
    for (size_t i = 0; i < sizeof zones / sizeof *zones; i++) {
        set_zone(zones[i]);
        for (int n = 0; n < 5000; n++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            check_local_time((int64_t)(random >> 20) % (7000 * 365 * WHEN_DAY) -
                             70 * 365 * WHEN_DAY);
        }
        /* All of 2011 and 2026, each with its clock changes. */
        for (int64_t start = INT64_C(1293840000000); start < INT64_C(1800000000000);
             start += INT64_C(473385600000))
            for (int64_t at = start; at < start + 366 * WHEN_DAY; at += 29 * WHEN_MINUTE)
                check_local_time(at);
    }
}

/* The C library knows one zone at a time, but that one well: by the same files, and by the rules at
 * their ends. */
static void named_zones_agree_with_the_c_library(void **state)
{
    static const char *const zones[] = {
        "Europe/Berlin",     "Europe/Dublin", "America/New_York", "America/St_Johns",
        "Africa/Casablanca", "Asia/Gaza",     "Asia/Kathmandu",   "Australia/Lord_Howe",
        "Pacific/Apia",      "Etc/GMT-14",    "America/Nuuk",     "Antarctica/Troll"};
    uint64_t random = 7;

    (void)state;
    for (size_t i = 0; i < sizeof zones / sizeof *zones; i++) {
        struct zone *z = zone_new(zones[i], strlen(zones[i]));
        assert_non_null(z);
        set_zone(zones[i]);
        for (int n = 0; n < 20000; n++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            int64_t at = (int64_t)(random >> 20) % (700 * 365 * WHEN_DAY) - 60 * 365 * WHEN_DAY;
            if (zone_offset(z, at) != when_local_offset(at))
                fail_msg("%s at %" PRId64 ": %" PRId64 ", not %" PRId64, zones[i], at,
                         zone_offset(z, at), when_local_offset(at));
        }
        zone_free(z);
    }
}

static void a_file_that_is_no_zone_is_refused(void **state)
{
    static const char *const names[] = {"",       "/etc/passwd", "../etc/passwd",  "zone.tab",
                                        "Europe", "x",           "Europe/Berlin\n"};
    char text[128];
    struct zone_rule rule;

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_null(zone_new(names[i], strlen(names[i])));
    memset(text, 'x', sizeof text);
    assert_null(zone_new(text, sizeof text));
    assert_true(zone_rule_parse("<+1030>-10:30<+11>-11,M10.1.0,J365/-2:30:15", &rule));
    static const char *const rules[] = {"",
                                        "C",
                                        "CET",
                                        "CET-25",
                                        "CET-1CEST",
                                        "CET-1CEST,",
                                        "CET-1CEST,M3.5.0",
                                        "<+01-1",
                                        "CET-1CEST,M13.5.0,M10.5.0",
                                        "CET-1CEST,M3.5.0,M10.5.0/168",
                                        "CET-1CEST,J0,J5",
                                        "CET-1CEST,M3.5.0,M10.5.0x"};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        assert_false(zone_rule_parse(rules[i], &rule));
}

static void sql_times_are_strict(void **state)
{
    static const char *const bad[] = {"",
                                      "0000-00-00 00:00:00",
                                      "2026-11-21",
                                      "2026-11-21T09:00:00",
                                      "2026-02-30 00:00:00",
                                      "2026-11-21 09:00:00Z",
                                      "2026-11-21 09:00:00.",
                                      "2026-11-21 09:00:00 "};
    struct err err;
    int64_t at = 5;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(when_parse_sql(bad[i], &at, &err), ERR_FATAL);
    assert_int_equal(at, 5);
    assert_int_equal(when_parse_sql("1970-01-01 00:00:01.5", &at, &err), 0);
    assert_int_equal(at, 1500);
    assert_int_equal(when_parse_sql("1969-12-31 23:59:59.999000", &at, &err), 0);
    assert_int_equal(at, -1);
}

static void what_is_no_instant_is_shown_as_a_dash(void **state)
{
    char text[WHEN_TEXT_SIZE];

    (void)state;
    assert_string_equal(when_format_utc(text, INT64_MIN), "-");
    assert_string_equal(when_format_local(text, INT64_MAX), "-");
    assert_string_equal(when_format_sql(text, INT64_MIN), "-");
}

static void the_place_of_a_fault_counts_characters_not_bytes(void **state)
{
    struct err err;
    int64_t at;
    char text[300];

    (void)state;
    assert_int_equal(when_parse_instant("2026-11-21 09:00 ä é", 0, &at, &err), ERR_DATA);
    assert_non_null(strstr(err.text, "at character 18: unexpected \"ä\""));
    memset(text, 0xbf, sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_int_equal(when_parse_instant(text, 0, &at, &err), ERR_DATA);
    assert_int_equal(when_parse_duration(text, &at, &err), ERR_DATA);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(durations_are_read_exactly_or_refused),
        cmocka_unit_test(a_duration_written_is_read_back),
        cmocka_unit_test(rough_durations_have_two_parts_at_most),
        cmocka_unit_test(instants_are_read_exactly_or_refused),
        cmocka_unit_test(both_readings_of_a_clock_change_can_be_pasted),
        cmocka_unit_test(every_date_agrees_with_the_c_library),
        cmocka_unit_test(local_times_name_one_instant_or_are_refused),
        cmocka_unit_test(named_zones_agree_with_the_c_library),
        cmocka_unit_test(a_file_that_is_no_zone_is_refused),
        cmocka_unit_test(sql_times_are_strict),
        cmocka_unit_test(what_is_no_instant_is_shown_as_a_dash),
        cmocka_unit_test(the_place_of_a_fault_counts_characters_not_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
