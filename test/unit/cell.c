/*
 * cell.c - one value in each format: what people see, JSON, TSV; and that TSV is read back to the
 * same bytes.
 */
#include "cli/show/cell.h"

#include "base/json.h"
#include "base/task.h"
#include "cli/many/bulk_line.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct cell_style style = {.utc = true, .now_at = 1790000000000};

static void check(const struct cell *cell, const char *plain, const char *json, const char *tsv)
{
    struct buf b = BUF_INIT;
    cell_put_plain(&b, &style, cell, 0, true);
    buf_str(&b, "|{");
    cell_put_json(&b, &style, "n", cell);
    buf_chr(&b, '|');
    cell_put_tsv(&b, &style, cell);
    struct buf want = BUF_INIT;
    buf_printf(&want, "%s|{%s|%s", plain, json, tsv);
    assert_string_equal(b.data, want.data);
    buf_done(&want);
    buf_done(&b);
}

/* In a narrow column: of today the time, of other days the minute. */
static void test_brief_times(void **state)
{
    static const struct {
        int64_t at;
        const char *seen;
    } cases[] = {{1790000000250, "14:13:20"}, {1790000000000 + 86400000, "09-22 14:13"}};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct buf b = BUF_INIT;
        struct cell cell = {.kind = CELL_NULL};

        cell_set_time(&cell, cases[i].at);
        cell.brief = true;
        cell_put_plain(&b, &style, &cell, 0, false);
        assert_string_equal(b.data, cases[i].seen);
        buf_done(&b);
    }
}

static void test_every_kind_in_every_format(void **state)
{
    (void)state;
    struct cell cell = {.kind = CELL_NULL};
    check(&cell, "-", "\"n\":null", "");
    cell_set_text(&cell, "a\tb\"\\\n");
    check(&cell, "a\\tb\"\\\\\\n", "\"n\":\"a\\tb\\\"\\\\\\n\"", "a\\tb\"\\\\\\n");
    cell_set_bytes(&cell, "\xff\0a", 3);
    check(&cell, "\\xFF\\x00a", "\"n_base64\":\"/wBh\"", "\\xff\\x00a");
    cell_set_number(&cell, UINT64_MAX);
    check(&cell, "18446744073709551615", "\"n\":18446744073709551615", "18446744073709551615");
    cell = (struct cell){.kind = CELL_BOOL, .number = 1};
    check(&cell, "yes", "\"n\":true", "true");
    cell = (struct cell){.kind = CELL_REAL, .real = 2.5};
    check(&cell, "2.50", "\"n\":2.500", "2.500");
    cell_set_time(&cell, 1790000000250);
    check(&cell, "2026-09-21 14:13:20.250Z", "\"n\":\"2026-09-21T14:13:20.250Z\"",
          "2026-09-21T14:13:20.250Z");
    cell = (struct cell){.kind = CELL_DURATION, .at = 90000};
    check(&cell, "1m30s", "\"n\":90000", "90000");
    cell_set_until(&cell, style.now_at + 90000);
    check(&cell, "1m30s", "\"n\":90000", "90000");
    cell_set_until(&cell, style.now_at);
    check(&cell, "-", "\"n\":null", "");
    cell_set_since(&cell, style.now_at - 1500);
    check(&cell, "1.5s", "\"n\":1500", "1500");
    cell_set_since(&cell, style.now_at);
    check(&cell, "0s", "\"n\":0", "0");
    cell_set_since(&cell, style.now_at + 1);
    check(&cell, "-", "\"n\":null", "");
    cell = (struct cell){.people = "resumed"};
    check(&cell, "resumed", "\"n\":null", "");
}

static void test_absent_values_are_null(void **state)
{
    (void)state;
    struct cell cell = {.kind = CELL_NULL};
    cell_set_text(&cell, NULL);
    cell_set_bytes(&cell, NULL, 5);
    cell_set_time(&cell, TASK_TIME_NONE);
    assert_int_equal(cell.kind, CELL_NULL);
}

static void test_a_time_in_a_table_is_cut_to_the_second(void **state)
{
    (void)state;
    struct buf b = BUF_INIT;
    cell_put_time(&b, &style, 1790000000250, false);
    assert_string_equal(b.data, "2026-09-21 14:13:20Z");
    buf_done(&b);
}

/* A line of TSV with every byte value in its body, as list writes it, becomes that body again. */
static void test_tsv_is_read_back_to_the_same_bytes(void **state)
{
    (void)state;
    char body[3 * 256];
    for (int i = 0; i < 256; i++) { /* each byte alone, before and after a character of two bytes */
        body[3 * i] = (char)i;
        memcpy(body + 3 * i + 1, "\xc3\xa4", 2);
    }
    struct buf line = BUF_INIT, arena = BUF_INIT;
    struct bulk_line_parser parser;
    struct bulk_line item;
    struct err err = {0};
    buf_str(&line, "tag\t\t\t");
    cell_put_escaped(&line, body, sizeof body);
    assert_true(json_utf8_valid(line.data, line.len, NULL, NULL));
    bulk_line_init(&parser, NULL, BULK_LINE_TSV);
    assert_int_equal(bulk_line_parse(&parser, line.data, line.len, &arena, &item, &err), 0);
    assert_int_equal(item.task.body_size, sizeof body);
    assert_memory_equal(arena.data + item.body, body, sizeof body);
    bulk_line_done(&parser);
    buf_done(&line);
    buf_done(&arena);
}

static void test_tsv_holds_nothing_that_a_terminal_acts_on(void **state)
{
    (void)state;
    struct buf out = BUF_INIT;
    static const char text[] = "\033[1m \xc2\x9b"
                               "1m \xe2\x80\xae \xf0\x9f\x90\x8c \xff\xc3";
    cell_put_escaped(&out, text, sizeof text - 1);
    assert_string_equal(out.data,
                        "\\x1b[1m \\xc2\\x9b1m \\xe2\\x80\\xae \xf0\x9f\x90\x8c \\xff\\xc3");
    buf_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_brief_times),
        cmocka_unit_test(test_every_kind_in_every_format),
        cmocka_unit_test(test_absent_values_are_null),
        cmocka_unit_test(test_a_time_in_a_table_is_cut_to_the_second),
        cmocka_unit_test(test_tsv_is_read_back_to_the_same_bytes),
        cmocka_unit_test(test_tsv_holds_nothing_that_a_terminal_acts_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
