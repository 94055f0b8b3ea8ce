/*
 * verdict.c - what a line of a batch handler is taken for.
 */
#include "runner/verdict.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

/* A line that is no verdict: whether it was meant as one, and the numbers it calls an "id". */
struct row {
    const char *line;
    size_t len;
    bool meant;
    uint64_t ids[3];
};
#define LINE(text) text, sizeof text - 1

static const struct row rows[] = {
    {LINE("{\"id\":1}"), true, {1}},
    {LINE(" \t{\"id\":1,\"result\":\"DONE\"}"), true, {1}},
    {LINE("{\"id\" : 12 ,\"result\":\"done\",\"extra\":1}"), true, {12}},
    {LINE("{\"id\":\"7\",\"result\":\"done\"}"), true, {7}},
    {LINE("{\"id\":7.0,\"result\":\"done\"}"), true, {7}},
    {LINE("{'id': 7, 'result': 'done'}"), true, {7}},
    {LINE("{id:7,result:\"done\"}"), true, {0}},
    {LINE("{'id':'7','result':'done'}"), true, {7}},
    {LINE("{\"result\":\"retry\",\"after\":120}"), true, {0}},
    {LINE("{\"result\":\"retry\",\"after\":\"120\"}"), true, {0}},
    {LINE("{\"result\":\"retry\",\"after\":\"-2m\"}"), true, {0}},
    {LINE("{\"result\":\"retry\",\"after\":\"400d\"}"), true, {0}},
    {LINE("{\"result\":\"snooze\"}"), true, {0}},
    {LINE("{\"id\":-7,\"result\":\"done\"}"), true, {0}},
    {LINE("{\"id\":18446744073709551615}"), true, {UINT64_MAX}},
    {LINE("{\"id\":18446744073709551616}"), true, {0}},
    {LINE("{\"id\":18446744073709551617}"), true, {0}},
    {LINE("{\"id\":3,\"result\":\"done\",\"after\":\"1s\"}"), true, {3}},
    {LINE("{\"id\":3,\"result\":\"fail\",\"after\":\"1s\"}"), true, {3}},
    {LINE("{\"result\":\"retry\",\"id\":3,\"after\":\"4000d\"}"), true, {3}},
    {LINE("{\"id\":3,\"result\":\"fail\",\"error\":\"\\u0000\"}"), true, {3}},
    {LINE("{\"id\":3,\"result\":\"fail\",\"error\":\"\\ud800\"}"), true, {3}},
    {LINE("{\"id\":3,\"result\":\"fail\",\"error\":\"caf\xe9\"}"), true, {3}},
    {LINE("{\"id\":3,\"result\":\"fail\",\"error\":\"no \\\"id\\\":4 there\",}"), true, {3}},
    {LINE("{\"id\":1,\"result\":\"done\"} {\"id\":2,\"result\":\"done\"}"), true, {1, 2}},
    {LINE("[{\"id\":1,\"result\":\"done\"}]"), false, {1}},
    {LINE("INFO {\"id\":5,\"result\":\"done\"}"), false, {5}},
    {LINE("\xef\xbb\xbf{\"id\":1,\"result\":\"done\"}"), true, {1}},
    {LINE("\xff\xfe{\0\"\0i\0d\0\"\0"), true, {0}},
    {LINE("\xfe\xff\0{\0\"\0i\0d\0\""), true, {0}},
    {LINE("\r{\"id\"\r:\t1}"), true, {1}},
    {LINE("{"), true, {0}},
    {LINE(""), false, {0}},
    {LINE("sent 12 mails, id: 5"), false, {0}},
    {LINE("\"id\""), false, {0}},
    {LINE("\"id\":"), false, {0}},
    {LINE("\"id\"=5"), false, {0}},
    {LINE("\"id':5"), false, {0}},
    {LINE("the id : 5"), false, {0}},
    {LINE("\"idx\":5 \"id'\":6"), false, {0}},
};

static void unreadable_lines_are_known_by_their_looks(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *row = &rows[i];
        size_t at = 0;

        if (verdict_is_meant(row->line, row->len) != row->meant)
            fail_msg("row %zu: %s: meant is not %d", i, row->line, row->meant);
        for (size_t k = 0; k < 3 && row->ids[k]; k++)
            assert_true(verdict_next_id(row->line, row->len, &at) == row->ids[k]);
        if (verdict_next_id(row->line, row->len, &at) != 0)
            fail_msg("row %zu: %s: names more", i, row->line);
        assert_int_equal(at, row->len);
    }
}

static void none_of_them_is_a_verdict(void **state)
{
    struct json_reader *r = json_reader_new();
    struct verdict v;
    struct err err;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(verdict_parse(r, rows[i].line, rows[i].len, &v, &err), ERR_DATA);
    json_reader_free(r);
}

static void verdicts_are_taken_to_the_letter(void **state)
{
    struct json_reader *r = json_reader_new();
    struct verdict v;
    struct err err;

    (void)state;
    assert_int_equal(
        verdict_parse(r, LINE("{\"id\":9223372036854775807,\"result\":\"done\"}"), &v, &err), 0);
    assert_true(v.id == INT64_MAX && v.result == VERDICT_DONE && v.after_ms == -1 && !v.error);
    assert_int_equal(verdict_parse(r, LINE("{\"id\":0,\"result\":\"done\"}"), &v, &err), 0);
    assert_true(v.id == 0 && v.result == VERDICT_DONE);
    assert_int_equal(
        verdict_parse(r, LINE(" {\"error\":\"no\",\"result\":\"fail\",\"id\":1}\r"), &v, &err), 0);
    assert_true(v.id == 1 && v.result == VERDICT_FAIL && v.after_ms == -1);
    assert_string_equal(v.error, "no");
    assert_int_equal(
        verdict_parse(r, LINE("{\"id\":2,\"result\":\"retry\",\"after\":\"10m\"}"), &v, &err), 0);
    assert_true(v.named && v.id == 2 && v.result == VERDICT_RETRY && v.after_ms == 600000 &&
                !v.error);
    assert_int_equal(verdict_parse(r, LINE("{\"result\":\"snooze\",\"after\":\"366d\"}"), &v, &err),
                     0);
    assert_true(!v.named && v.result == VERDICT_SNOOZE && v.after_ms == 366 * WHEN_DAY);
    assert_int_equal(verdict_parse(r, LINE("{\"result\":\"snooze\",\"after\":\"0s\"}"), &v, &err),
                     0);
    assert_int_equal(v.after_ms, 1000);
    assert_int_equal(verdict_parse(r, LINE("{\"result\":\"retry\",\"hold\":\"1ms\"}"), &v, &err),
                     0);
    assert_true(v.result == VERDICT_SNOOZE && v.after_ms == 1000 && v.hold_ms == 1);
    assert_int_equal(verdict_parse(r, LINE("{\"result\":\"retry\",\"after\":\"0s\"}"), &v, &err),
                     0);
    assert_int_equal(v.after_ms, 0); /* it counts */
    json_reader_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unreadable_lines_are_known_by_their_looks),
        cmocka_unit_test(none_of_them_is_a_verdict),
        cmocka_unit_test(verdicts_are_taken_to_the_letter),
    };

    return cmocka_run_group_tests_name("verdict", tests, NULL, NULL);
}
