/* Cron expressions and timetables: the table of test/data/cron.tbl, and properties. */
#include "base/cron.h"

#include "base/civil.h"
#include "base/mem.h"
#include "base/task.h"
#include "base/timetable.h"
#include "base/when.h"
#include "base/when_parse.h"
#include "base/zone.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "table_rows.h"

#include <inttypes.h>
#include <time.h>
#include <unistd.h>

static const char *const marks[] = {"", "(moved)", "(first)"};

static struct timetable *make(enum timetable_kind kind, const char *expression, const char *zone,
                              struct err *err)
{
    const struct timetable_spec spec = {kind, expression, zone, TASK_TIME_NONE, TASK_TIME_NONE};
    return timetable_new(&spec, err);
}

static int64_t at_of(const char *text)
{
    struct err err;
    int64_t at = 0;

    if (when_parse_instant(text, 0, &at, &err))
        fail_msg("%s", err.text);
    return at;
}

/* "2026-03-29T01:00:00Z(moved)", for as many slots as `like` has words. */
static void put_slots(struct buf *b, const struct timetable *t, int64_t at, const char *like)
{
    enum timetable_shift shift;
    char text[WHEN_TEXT_SIZE];

    for (const char *p = like; p; p = strchr(p + 1, ' ')) {
        buf_str(b, p == like ? "" : " ");
        if (!timetable_next(t, at, &at, &shift)) {
            buf_str(b, "none");
            return;
        }
        when_format_utc(text, at);
        buf_printf(b, "%.16sZ%s", text, marks[shift]);
    }
}

/* name | expression, or every or gap | zone | after | slots, or ! and part of the refusal |
 * sentence */
static bool check_row(char **cell, const char *where)
{
    struct err err = {0};
    struct buf slots = BUF_INIT, sentence = BUF_INIT;
    const char *text = cell[1], *wanted = cell[4];
    enum timetable_kind kind = TIMETABLE_CRON;

    if (!strncmp(text, "every ", 6) || !strncmp(text, "gap ", 4)) {
        kind = *text == 'e' ? TIMETABLE_EVERY : TIMETABLE_GAP;
        text = strchr(text, ' ') + 1;
    }
    struct timetable *t = make(kind, text, *cell[2] ? cell[2] : NULL, &err);
    if (!t || *wanted == '!') {
        bool fine = !t && *wanted == '!' && err.code == ERR_DATA && strstr(err.text, wanted + 2);
        if (!fine)
            print_error("%s: got \"%s\"\n", where, t ? "no error" : err.text);
        timetable_free(t);
        return fine;
    }
    put_slots(&slots, t, at_of(cell[3]), wanted);
    timetable_put(&sentence, t);
    bool fine = !strcmp(slots.data, wanted) && !strcmp(sentence.data, cell[5]);
    if (!fine)
        print_error("%s: got %s | %s\n", where, slots.data, sentence.data);
    buf_done(&slots);
    buf_done(&sentence);
    timetable_free(t);
    return fine;
}

/* ---- against a walk from minute to minute, as Debian's cron takes it */

static uint64_t random_state;

static unsigned draw(unsigned below)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(random_state >> 33) % below;
}

/* One field: its text, and what it stands for. */
struct drawn {
    char text[64];
    bool has[64], star;
};

static struct drawn draw_field(unsigned low, unsigned high)
{
    struct drawn f = {.star = false};
    char *p = f.text;
    unsigned items = 1 + draw(3), span = high - low + 1;

    for (unsigned i = 0; i < items; i++) {
        unsigned kind = draw(i ? 3 : 6), first = low, last = high, step = 1;
        p += sprintf(p, "%s", i ? "," : "");
        f.star |= kind > 3;
        if (kind > 3) {
            *p++ = '*';
        } else {
            first = low + draw(span);
            last = kind ? first : first + draw(high - first + 1);
            p += sprintf(p, kind ? "%u" : "%u-%u", first, last);
        }
        if ((kind == 0 || kind == 4) && draw(2))
            p += sprintf(p, "/%u", step = 1 + draw(span));
        for (unsigned v = first; v <= last; v += step)
            f.has[v] = true;
    }
    return f;
}

static bool matches(const struct drawn *f, int64_t local)
{
    time_t seconds = (time_t)(local / 1000);
    struct tm tm;

    gmtime_r(&seconds, &tm);
    bool date = f[2].has[tm.tm_mday],
         week = f[4].has[tm.tm_wday] || (tm.tm_wday == 0 && f[4].has[7]);
    return f[0].has[tm.tm_min] && f[1].has[tm.tm_hour] && f[3].has[tm.tm_mon + 1] &&
           (f[2].star || f[4].star ? date && week : date || week);
}

/* The minutes from `at` to `to` at which it starts: the loop of cron.c, by the C library's clock.
 */
static size_t walk(const struct drawn *f, int64_t at, int64_t to, int64_t *slots, size_t most)
{
    bool fixed = !f[0].star && !f[1].star;
    int64_t shown = INT64_MIN; /* the latest local time that has been */
    size_t count = 0;

    for (; at < to && count < most; at += WHEN_MINUTE) {
        int64_t local = at + when_local_offset(at);
        int64_t ahead = shown == INT64_MIN ? INT64_MAX : local - shown;
        bool back = ahead <= 0 && ahead > -3 * WHEN_HOUR, now;
        if (!fixed || ahead > 3 * WHEN_HOUR)
            now = matches(f, local);
        else
            for (now = false; shown < local && !back;)
                now |= matches(f, shown += WHEN_MINUTE);
        if (fixed && !back)
            shown = local;
        if (now)
            slots[count++] = at;
    }
    return count;
}

static void random_expressions_run_as_a_walk_by_minutes_finds(void **state)
{
    static const struct {
        const char *zone, *from; /* shortly before a change */
    } places[] = {{"Europe/Berlin", "2026-03-27T10:00:00Z"},
                  {"Europe/Berlin", "2026-10-23T22:00:00Z"},
                  {"Europe/Berlin", "2026-10-25T00:10:00Z"},
                  {"Australia/Lord_Howe", "2026-04-03T10:00:00Z"},
                  {"Australia/Lord_Howe", "2026-10-02T23:00:00Z"},
                  {"Pacific/Apia", "2011-12-29T09:00:00Z"},
                  {"Antarctica/Casey", "2018-03-09T09:00:00Z"},
                  {"America/Santiago", "2045-04-01T00:00:00Z"}};
    enum { MOST = 400 };
    static int64_t slots[MOST];
    struct err err;
    size_t compared = 0;
    const int rounds = getenv("DQ_TEST_SHORT") ? 15 : 1500; /* SHORT: memcheck is slow */

    (void)state;
    random_state = 21;
    for (int i = 0; i < rounds; i++) {
        size_t place = draw(sizeof places / sizeof *places);
        struct drawn f[5] = {draw_field(0, 59), draw_field(0, 23), draw_field(1, 31),
                             draw_field(1, 12), draw_field(0, 7)};
        char text[400];
        snprintf(text, sizeof text, "%s %s %s %s %s", f[0].text, f[1].text, f[2].text, f[3].text,
                 f[4].text);
        struct timetable *t = make(TIMETABLE_CRON, text, places[place].zone, &err);
        if (!t)
            continue; /* it never comes */
        int64_t begin_at = at_of(places[place].from), to_at = begin_at + 4 * WHEN_DAY;
        setenv("TZ", places[place].zone, 1);
        tzset();
        /* the walk begins a day earlier, so that it knows what the clock has shown */
        size_t count = walk(f, begin_at - WHEN_DAY, to_at, slots, MOST);
        int64_t at = begin_at - 1, next;
        for (size_t k = 0; k < count; k++) {
            if (slots[k] < begin_at)
                continue;
            if (!timetable_next(t, at, &next, NULL) || next != slots[k])
                fail_msg("%s in %s: after %" PRId64 ": %" PRId64 ", not %" PRId64, text,
                         places[place].zone, at, next, slots[k]);
            at = next;
            compared++;
        }
        if (count < MOST && timetable_next(t, at, &next, NULL) && next < to_at)
            fail_msg("%s in %s: %" PRId64 " is no slot", text, places[place].zone, next);
        timetable_free(t);
    }
    assert_in_range(compared, rounds * 6, 1000000);
    setenv("TZ", "UTC", 1);
    tzset();
}

/* ---- bounds, periods, digests */

static void slots_lie_between_from_and_to(void **state)
{
    struct timetable_spec spec = {TIMETABLE_EVERY, "10m", NULL, at_of("2026-11-21T09:03:00Z"),
                                  at_of("2026-11-21T09:13:00Z")};
    struct err err;
    int64_t at;

    (void)state;
    struct timetable *t = timetable_new(&spec, &err);
    assert_true(timetable_next(t, 0, &at, NULL));
    assert_int_equal(at, spec.from_at);
    assert_true(timetable_next(t, at, &at, NULL));
    assert_int_equal(at, spec.to_at);
    assert_false(timetable_next(t, at, &at, NULL));
    timetable_free(t);
    spec.kind = TIMETABLE_CRON;
    spec.expression = "3-20/10 9 * * *";
    t = timetable_new(&spec, &err);
    assert_true(timetable_next(t, 0, &at, NULL));
    assert_int_equal(at, spec.from_at);
    assert_true(timetable_next(t, at, &at, NULL));
    assert_int_equal(at, spec.to_at);
    assert_false(timetable_next(t, at, &at, NULL));
    timetable_free(t);
    spec.to_at = spec.from_at;
    assert_null(timetable_new(&spec, &err));
    assert_string_equal(err.text, "a schedule from 2026-11-21T09:03:00.000Z to "
                                  "2026-11-21T09:03:00.000Z has no time: the end must be later");
}

static void the_period_is_the_distance_of_the_slots_around_an_instant(void **state)
{
    static const struct {
        const char *expression, *at;
        int64_t period_ms;
    } rows[] = {{"*/5 8-18 * * 1-5", "2026-11-20T10:02:00Z", 5 * WHEN_MINUTE},
                {"*/5 8-18 * * 1-5", "2026-11-20T18:55:00Z", 61 * WHEN_HOUR + 5 * WHEN_MINUTE},
                {"*/5 8-18 * * 1-5", "2026-11-20T18:54:59.999Z", 5 * WHEN_MINUTE},
                {"0 2 * * *", "2026-11-20T10:00:00Z", WHEN_DAY},
                {"0 0 29 2 *", "2026-11-20T10:00:00Z", 1461 * WHEN_DAY},
                {"* * 1 1 *", "2026-11-20T10:00:00Z", 364 * WHEN_DAY + WHEN_MINUTE}};
    struct err err;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct timetable *t = make(TIMETABLE_CRON, rows[i].expression, "UTC", &err);
        assert_int_equal(timetable_period_ms(t, at_of(rows[i].at)), rows[i].period_ms);
        timetable_free(t);
    }
    struct timetable *t = make(TIMETABLE_GAP, "10m", NULL, &err);
    assert_int_equal(timetable_period_ms(t, 0), 10 * WHEN_MINUTE);
    timetable_free(t);
}

static void only_a_zone_with_a_file_has_a_digest(void **state)
{
    struct err err;
    struct timetable *utc = make(TIMETABLE_CRON, "@daily", NULL, &err);
    struct timetable *berlin = make(TIMETABLE_CRON, "@daily", "Europe/Berlin", &err);
    struct timetable *same = make(TIMETABLE_CRON, "@hourly", "Europe/Berlin", &err);
    struct timetable *apia = make(TIMETABLE_CRON, "@daily", "Pacific/Apia", &err);

    (void)state;
    assert_true(timetable_zone_digest(utc) == 0);
    assert_true(timetable_zone_digest(berlin) != 0);
    assert_true(timetable_zone_digest(berlin) == timetable_zone_digest(same));
    assert_true(timetable_zone_digest(berlin) != timetable_zone_digest(apia));
    timetable_free(utc);
    timetable_free(berlin);
    timetable_free(same);
    timetable_free(apia);
}

static void the_version_of_the_time_zone_database_is_read(void **state)
{
    char dir[] = "/tmp/dq-zones.XXXXXX", path[64];

    (void)state;
    assert_non_null(mkdtemp(dir));
    setenv("TZDIR", dir, 1);
    assert_string_equal(timetable_zone_version(), "");
    snprintf(path, sizeof path, "%s/tzdata.zi", dir);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs("# version 2026a\n# This zic input file is in the public domain.\n", f);
    fclose(f);
    assert_string_equal(timetable_zone_version(), "2026a");
    unsetenv("TZDIR");
    unlink(path);
    rmdir(dir);
}

/* For test/cron/run: the slots from argv[3] to before argv[4] of each expression behind them, in
 * ms. */
static int print_slots(char **argv)
{
    struct err err;

    for (char **expression = argv + 5; *expression; expression++) {
        struct timetable *t = make(TIMETABLE_CRON, *expression, argv[2], &err);
        if (!t) {
            fprintf(stderr, "%s\n", err.text);
            return 1;
        }
        int64_t to_at = atoll(argv[4]);
        for (int64_t at = atoll(argv[3]) - 1; timetable_next(t, at, &at, NULL) && at < to_at;)
            printf("%" PRId64 " ", at);
        printf("\n");
        timetable_free(t);
    }
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest others[] = {
        cmocka_unit_test(random_expressions_run_as_a_walk_by_minutes_finds),
        cmocka_unit_test(slots_lie_between_from_and_to),
        cmocka_unit_test(the_period_is_the_distance_of_the_slots_around_an_instant),
        cmocka_unit_test(only_a_zone_with_a_file_has_a_digest),
        cmocka_unit_test(the_version_of_the_time_zone_database_is_read),
    };

    if (argc > 5 && !strcmp(argv[1], "slots"))
        return print_slots(argv);
    return table_run_rows("cron.tbl", 6, check_row, others, sizeof others / sizeof *others);
}
