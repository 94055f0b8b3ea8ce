/* Which failures that last the log mentions, and when again. */
#include "poller/trouble.h"

#include "base/log.h"
#include "store/db/db.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "capture.h"

#include <string.h>

#define MINUTE_US INT64_C(60000000)

static struct conf conf = {.dqd = {.lease_ms = 60000}};
static struct context ctx = {.conf = &conf};

static int begin(void **state)
{
    int rc = capture_begin(state);

    log_open("dqd", LOG_INFO);
    ctx.db = db_new(&conf.mysql);
    return rc;
}

static int end(void **state)
{
    db_free(ctx.db);
    return capture_end(state);
}

/* Lines since the last call. */
static int lines(void)
{
    char line[2100];
    int n = 0;

    rewind(capture);
    while (fgets(line, sizeof line, capture))
        n++;
    capture_clear();
    return n;
}

static const struct err lost = {.code = ERR_LOST, .text = "the connection broke"};
static const struct err read_only = {.code = ERR_UNAVAILABLE, .text = "the server is read-only"};

/* A failure at this time, in minutes, and whether it is logged. */
static const struct {
    int minute;
    const struct err *err;
    bool said;
} failures[] = {
    {100, &lost, true},      {101, &lost, false}, {109, &lost, false},     {110, &lost, true},
    {111, &read_only, true}, {112, &lost, true},  {113, &read_only, true},
};

static void a_duty_says_each_error_when_it_changes_and_every_ten_minutes(void **state)
{
    struct trouble t = {0};

    (void)state;
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
        trouble_failed(&t, &ctx, TROUBLE_PROMISE, "claim", "refused", failures[i].err,
                       failures[i].minute * MINUTE_US);
        assert_int_equal(lines(), failures[i].said);
    }
    trouble_over(&t, "claim");
    assert_int_equal(lines(), 1);
    trouble_over(&t, "claim");
    assert_int_equal(lines(), 0);
}

static void an_outage_says_each_kind_of_failure_once_and_every_ten_minutes(void **state)
{
    struct outage o = {0};

    (void)state;
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
        trouble_outage(&o, &ctx, "away", failures[i].err, failures[i].minute * MINUTE_US);
        /* from minute 111 on, both have been said */
        assert_int_equal(lines(), failures[i].said && failures[i].minute < 112);
    }
    trouble_outage_over(&o);
    trouble_outage(&o, &ctx, "away", &lost, 114 * MINUTE_US);
    assert_int_equal(lines(), 1);
}

#define CAPTURED(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CAPTURED(a_duty_says_each_error_when_it_changes_and_every_ten_minutes),
        CAPTURED(an_outage_says_each_kind_of_failure_once_and_every_ten_minutes),
    };

    return cmocka_run_group_tests_name("trouble", tests, NULL, NULL);
}
