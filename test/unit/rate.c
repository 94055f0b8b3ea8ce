/* What a rate lets start: each row is a test; and random sequences, compared with a simple oracle.
 * The number of steps is the argument, in thousands; the seed is the second one. */
#include "base/mem.h"
#include "base/rate.h"
#include "poller/look_pace.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/param.h>
#include <cmocka.h>

#include "table_rows.h"

#define STARTS_MAX 4096

static int64_t read_us(const char *text)
{
    return !strcmp(text, "none") ? INT64_MIN : strtoll(text, NULL, 10) * 1000;
}

static void put_us(struct buf *b, int64_t us)
{
    buf_printf(b, "%" PRId64, us / 1000);
    if (us % 1000)
        buf_printf(b, ".%03d", (int)(us % 1000));
}

/* What the row says of the rate: the starts until the horizon, which are taken. */
static void describe(struct buf *b, const struct rate *r, int64_t next, int64_t now, int64_t until)
{
    int64_t starts[STARTS_MAX];
    uint64_t n = rate_may(r, next, now, until);

    assert_true(n <= STARTS_MAX);
    assert_int_equal(n > 0, rate_first(r, next, now) <= MIN(until, now + RATE_HORIZON_US));
    if (n)
        next = rate_take(r, next, now, starts, n);
    for (uint64_t i = 0; i < n; i++) {
        buf_str(b, i ? " " : "");
        put_us(b, starts[i]);
    }
    buf_str(b, n ? "; " : "-; ");
    put_us(b, next);
    buf_str(b, "; ");
    rate_put(b, r);
}

static bool check_row(char **cell, const char *where)
{
    char *burst = strstr(cell[1], " burst=");
    struct buf b = BUF_INIT;
    struct rate r;
    struct err err;

    if (burst) {
        *burst = '\0';
        burst += strlen(" burst=");
    }
    if (rate_parse(cell[1], &r, &err) ||
        (burst && rate_set_burst(&r, strtoll(burst, NULL, 10), &err)))
        buf_str(&b, err.text);
    else
        describe(&b, &r, read_us(cell[2]), read_us(cell[3]), read_us(cell[4]));
    bool right = !strcmp(b.data, cell[5]);
    if (!right)
        print_error("%s: %s\n", where, b.data);
    buf_done(&b);
    return right;
}

/* ---- random sequences */

static uint64_t steps = 10000000, seed = 1;

static uint64_t any(uint64_t below)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (seed >> 33) % below;
}

/* A bucket of tokens, in a unit in which a start costs a whole number: a microsecond earns `count`,
 * a start costs period_us. */
struct bucket {
    __int128 level;
    int64_t at;
};

static __int128 bucket_full(const struct rate *r)
{
    return (__int128)r->burst * r->period_ms * 1000;
}

/* False: more starts than the promise. */
static bool bucket_take(struct bucket *k, const struct rate *r, int64_t at)
{
    k->level = MIN(bucket_full(r), k->level + (__int128)(at - k->at) * r->count);
    k->at = at;
    k->level -= (__int128)r->period_ms * 1000;
    return k->level >= 0;
}

/* Of a rate, steps of several dqds: each asks at a time of its own, takes some of what it may. No
 * start is beyond the promise; whoever may take none could not start anything by the bucket either;
 * and a limit that is always used reaches its rate. */
static void run_sequence(uint64_t n)
{
    const struct rate r = {(uint32_t)any(200) + 1,
                           (int64_t[]){100, 1000, 10000, 60000, 3600000}[any(5)],
                           (uint32_t)(any(2) ? 1 : any(30) + 1)};
    const int64_t slot = r.period_ms * 1000 / r.count, begin = (int64_t)any(1000000000);
    struct bucket k = {bucket_full(&r), begin};
    int64_t now = begin, next = INT64_MIN, last = begin, starts[64];
    bool greedy = any(2);
    uint64_t taken = 0;

    for (uint64_t i = 0; i < n; i++) {
        now += (int64_t)any(any(4) ? (uint64_t)slot / 2 + 1 : (uint64_t)slot * 3 + 1);
        int64_t horizon = now + (int64_t)any(any(2) ? 1 : 2000000);
        uint64_t may = rate_may(&r, next, now, horizon);
        int64_t first = rate_first(&r, next, now);
        assert_true(first >= now && (may > 0) == (first <= horizon));
        uint64_t want = greedy ? UINT64_MAX : any(may + 1),
                 take = MIN(MIN(may, MEM_COUNT(starts)), want);
        if (!take)
            continue;
        next = rate_take(&r, next, now, starts, take);
        assert_int_equal(starts[0], first);
        for (uint64_t j = 0; j < take; j++) {
            assert_true(starts[j] >= last && starts[j] <= horizon);
            assert_true(bucket_take(&k, &r, starts[j]));
            last = starts[j];
        }
        taken += take;
        /* what is refused would break the promise, but for what rounding takes: a microsecond each
         */
        struct bucket would = k;
        would.level -= (__int128)r.count * (int64_t)(taken + 1);
        if (take == may && take < MEM_COUNT(starts))
            assert_false(bucket_take(&would, &r, MAX(horizon, last)));
    }
}

static void random_sequences_keep_the_promise_and_waste_nothing(void **state)
{
    (void)state;
    steps /= getenv("DQ_TEST_SHORT") ? 10 : 1; /* memcheck is slow */
    for (uint64_t done = 0; done < steps; done += 1000)
        run_sequence(1000);
}

/* Of a limit that always has tasks, asked at any distance below the horizon. */
static void a_limit_that_is_always_used_reaches_its_rate(void **state)
{
    const struct rate r = {100, 60000, 10};
    int64_t now = 0, next = INT64_MIN, starts[64];
    uint64_t taken = 0;
    (void)state;

    for (; now < 600 * INT64_C(1000000); now += (int64_t)any(400000)) {
        uint64_t may = rate_may(&r, next, now, now + 200000);
        if (may)
            next = rate_take(&r, next, now, starts, may);
        taken += may;
    }
    assert_in_range(taken, 990, 1010);
}

/* An hour back, then forth: at most a start and a burst more than in even time. */
static void a_clock_that_jumps_floods_nothing_and_stops_nothing(void **state)
{
    const struct rate r = {100, 60000, 5};
    const int64_t hour = INT64_C(3600000000);
    int64_t now = 10 * hour, next = now + 5 * 600000, starts[64];
    (void)state;

    assert_false(rate_set_back(&r, next, now));
    now -= hour;
    assert_true(rate_set_back(&r, next, now));
    assert_int_equal(rate_may(&r, next, now, now), 1);
    next = rate_take(&r, next, now, starts, 1);
    assert_false(rate_set_back(&r, next, now));
    assert_int_equal(rate_first(&r, next, now), now + 600000);
    assert_int_equal(rate_may(&r, next, now + hour, now + hour), 5);
}

/* However long the slots of the rate before it: no start but those reserved, and no clock that was
 * set back. */
static void a_rate_that_is_raised_forgets_no_start(void **state)
{
    const struct rate rates[] = {{14, 3600000, 1}, {100, 60000, 5}, {1000000, 1, 1}};
    (void)state;

    for (size_t i = 0; i < MEM_COUNT(rates); i++) {
        const int64_t now = INT64_C(1000000000), next = now + rate_most_us(&rates[i]);

        assert_false(rate_set_back(&rates[i], next, now - 5000000)); /* one that asked before it */
        assert_int_equal(rate_first(&rates[i], next, now),
                         now + RATE_RESERVED_US + rate_slot_us(&rates[i]));
    }
}

/* Starts that come before a claim is over are lost, so those behind it are reserved, and as many as
 * until the next claim is over. */
static void a_database_that_is_far_away_loses_no_starts(void **state)
{
    struct look_pace pace = {0};

    (void)state;
    for (int i = 0; i < 3; i++)
        look_pace_limited(&pace, 3000);
    assert_int_equal(look_pace_lead_ms(&pace), 0);
    assert_int_equal(look_pace_horizon_ms(&pace), 100);
    look_pace_limited(&pace, 800000); /* chance */
    assert_int_equal(look_pace_lead_ms(&pace), 0);
    look_pace_limited(&pace, 800000);
    assert_int_equal(look_pace_lead_ms(&pace), 475);
    assert_int_equal(look_pace_horizon_ms(&pace), 1200);
    for (int i = 0; i < 2; i++)
        look_pace_limited(&pace, 60000000);
    assert_int_equal(look_pace_lead_ms(&pace), 1000);
    assert_int_equal(look_pace_horizon_ms(&pace), 1000); /* no further ahead than two seconds */
}

/* They wait for the same connection as all other claims. */
static void claims_under_rates_that_take_most_of_the_time_reserve_more_starts(void **state)
{
    struct look_pace pace = {0};
    int64_t now_us = 1000000, last_ms;

    (void)state;
    for (int i = 0; i < 400; i++) /* 20 limits, 2 ms each: two fifths of the time */
        look_pace_rated(&pace, 2000, false, now_us += 5000);
    assert_int_equal(look_pace_horizon_ms(&pace), 100);
    for (int i = 0; i < 400; i++) { /* as often as the horizon allows, 10 ms each */
        now_us += MAX(look_pace_horizon_ms(&pace) * 1000 / 2 / 20, 10000);
        look_pace_rated(&pace, 10000, false, now_us);
    }
    last_ms = look_pace_horizon_ms(&pace);
    assert_in_range(last_ms, 800, 1800); /* a quarter to half of the time */
    for (int i = 0; i < 400; i++)        /* one limit, of a server that is far away */
        look_pace_rated(&pace, 400000, false, now_us += 400000);
    assert_int_equal(look_pace_horizon_ms(&pace), 2000);
    for (int i = 0; i < 400; i++)
        look_pace_rated(&pace, 400000, true, now_us += 400000);
    assert_int_equal(look_pace_horizon_ms(&pace), 100);
    look_pace_rated(&pace, 400000, false, now_us += 400000);
    assert_in_range(look_pace_horizon_ms(&pace), 101, 120);
    for (int i = 0; i < 9; i++)
        look_pace_rated(&pace, 1000, false, now_us += 400000);
    assert_int_equal(look_pace_horizon_ms(&pace), 100);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest others[] = {
        cmocka_unit_test(random_sequences_keep_the_promise_and_waste_nothing),
        cmocka_unit_test(a_limit_that_is_always_used_reaches_its_rate),
        cmocka_unit_test(a_database_that_is_far_away_loses_no_starts),
        cmocka_unit_test(claims_under_rates_that_take_most_of_the_time_reserve_more_starts),
        cmocka_unit_test(a_clock_that_jumps_floods_nothing_and_stops_nothing),
        cmocka_unit_test(a_rate_that_is_raised_forgets_no_start),
    };

    if (argc > 1)
        steps = strtoull(argv[1], NULL, 10) * 1000;
    if (argc > 2)
        seed = strtoull(argv[2], NULL, 10);
    return table_run_rows("rates.tbl", 6, check_row, others, sizeof others / sizeof others[0]);
}
