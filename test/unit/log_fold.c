/* Of many alike events the log gets few lines, which add up. */
#include "base/log_fold.h"

#include "base/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "capture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int64_t now_us = INT64_C(5000000000);

static int redirect(void **state)
{
    int rc = capture_begin(state);

    log_open("dqd", LOG_INFO);
    return rc;
}

struct written {
    unsigned long lines, events;
    char last[2100];
};

/* What was written since the last call. */
static struct written written(void)
{
    struct written w = {0};
    char line[2100];

    rewind(capture);
    while (fgets(line, sizeof line, capture)) {
        const char *repeated = strstr(line, " repeated=");
        w.lines++;
        w.events += 1 + (repeated ? strtoul(repeated + strlen(" repeated="), NULL, 10) : 0);
        strcpy(w.last, line);
    }
    capture_clear();
    return w;
}

static void fail_task(const char *tag, int id, const char *error)
{
    log_fold(now_us, LOG_INFO, "attempt failed", tag, error, "id=%d error=%s", id,
             log_quote(error));
}

/* Another second has passed. */
static void later(void)
{
    now_us += LOG_FOLD_EVERY_US;
    log_fold_flush(now_us);
}

static void the_first_is_written_at_once_the_others_once_a_second(void **state)
{
    char error[64];
    struct written w;

    (void)state;
    fail_task("pay", 0, "row 1");
    w = written();
    assert_int_equal(w.lines, 1);
    assert_null(strstr(w.last, "repeated"));
    assert_true(log_fold_next() == INT64_MAX);
    for (int i = 1; i < 3700; i++) {
        snprintf(error, sizeof error, "row %d", i);
        fail_task("pay", i, error);
    }
    assert_int_equal(written().lines, 0);
    assert_true(log_fold_next() == now_us + LOG_FOLD_EVERY_US);
    now_us += LOG_FOLD_EVERY_US - 1;
    log_fold_flush(now_us);
    assert_int_equal(written().lines, 0);
    now_us++;
    log_fold_flush(now_us);
    w = written();
    assert_int_equal(w.lines, 1);
    assert_int_equal(w.events, 3699);
    assert_non_null(
        strstr(w.last, "msg=\"attempt failed\" repeated=3698 id=3699 error=\"row 3699\"\n"));
    assert_true(log_fold_next() == INT64_MAX);
    later();
    fail_task("pay", 1, "row 1");
    assert_int_equal(written().lines, 1);
}

static void other_tags_errors_and_messages_have_lines_of_their_own(void **state)
{
    (void)state;
    later();
    fail_task("a", 1, "no route");
    fail_task("b", 2, "no route");
    fail_task("a", 3, "no door");
    fail_task("a", 3, NULL);
    log_fold(now_us, LOG_WARN, "lease expired", "a", NULL, "id=%d", 3);
    assert_int_equal(written().lines, 5);
    fail_task("a", 1, "no route");
    assert_int_equal(written().lines, 0);
    later();
    struct written w = written();
    assert_int_equal(w.lines, 1);
    assert_null(strstr(w.last, "repeated"));
    log_fold(now_us, LOG_DEBUG, "attempt failed", "a", NULL, "%s", ""); /* below the level */
    later();
    assert_int_equal(written().lines, 0);
}

/* A flush may come late: the events that wait keep their place, and are not counted as others. */
static void what_waits_keeps_its_place(void **state)
{
    char tag[32];
    struct written w;

    (void)state;
    later();
    later();
    for (int i = 0; i < 2 * LOG_FOLD_KINDS; i++) {
        snprintf(tag, sizeof tag, "tag.%d", i / 2);
        fail_task(tag, i, "no route");
    }
    assert_int_equal(written().lines, LOG_FOLD_KINDS);
    now_us += 2 * LOG_FOLD_EVERY_US;
    fail_task("new", 0, "no route");
    w = written();
    assert_int_equal(w.lines, 1);
    assert_null(strstr(w.last, "repeated"));
    later();
    assert_int_equal(written().events, LOG_FOLD_KINDS);
}

/* However many kinds there are: what finds no place of its own is folded by its message. */
static void lines_are_bounded_and_add_up(void **state)
{
    unsigned long lines = 0, events = 0, told = 0;
    char tag[32], error[64];

    (void)state;
    later();
    for (int second = getenv("DQ_TEST_SHORT") ? 18 : 0; second < 20; second++) { /* for memcheck */
        for (int i = 0; i < 5000; i++) {
            snprintf(tag, sizeof tag, "tag.%d", rand() % 300);
            snprintf(error, sizeof error, "error %c%c", 'a' + rand() % 26, 'a' + rand() % 26);
            fail_task(tag, i, error);
            log_fold(now_us, LOG_WARN, "lease expired", tag, NULL, "id=%d", i);
            events += 2;
            now_us += 100;
            log_fold_flush(now_us);
        }
        struct written w = written();
        assert_in_range(w.lines, 1, 2 * (LOG_FOLD_KINDS + 2));
        lines += w.lines;
        told += w.events;
    }
    log_fold_flush(INT64_MAX);
    told += written().events;
    assert_int_equal(told, events);
    assert_true(lines < 20 * (LOG_FOLD_KINDS + 10));
    assert_true(log_fold_next() == INT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_first_is_written_at_once_the_others_once_a_second,
                                        redirect, capture_end),
        cmocka_unit_test_setup_teardown(other_tags_errors_and_messages_have_lines_of_their_own,
                                        redirect, capture_end),
        cmocka_unit_test_setup_teardown(what_waits_keeps_its_place, redirect, capture_end),
        cmocka_unit_test_setup_teardown(lines_are_bounded_and_add_up, redirect, capture_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
