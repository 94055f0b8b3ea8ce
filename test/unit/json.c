/* JSON: what is written is valid and read back to the byte, what is read fits its table or is
 * refused. */
#include "base/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

static const struct json_member members[] = {
    {"tag", JSON_TEXT, true},   {"body", JSON_BYTES, false}, {"id", JSON_INT, false},
    {"live", JSON_BOOL, false}, {"data", JSON_BYTES, false},
};
enum { TAG, BODY, ID, LIVE, DATA, COUNT };

static struct json_reader *reader;
static struct json_value values[COUNT];
static struct err err;

static int open_reader(void **state)
{
    (void)state;
    reader = json_reader_new();
    return 0;
}

static int close_reader(void **state)
{
    (void)state;
    json_reader_free(reader);
    return 0;
}

static int read_line(const char *line)
{
    return json_read_object(reader, line, strlen(line), members, COUNT, values, &err);
}

static void refuses(const char *line, const char *complaint)
{
    if (read_line(line) != ERR_DATA)
        fail_msg("%s was accepted", line);
    if (!strstr(err.text, complaint))
        fail_msg("%s: got \"%s\", expected \"%s\"", line, err.text, complaint);
}

static void string_is(const char *s, size_t len, const char *expected)
{
    struct buf b = BUF_INIT;

    json_put_string(&b, s, len);
    assert_string_equal(b.data, expected);
    buf_done(&b);
}

static void strings_are_escaped(void **state)
{
    (void)state;
    string_is("", 0, "\"\"");
    string_is("plain", 5, "\"plain\"");
    string_is("say \"hi\" \\ there", 16, "\"say \\\"hi\\\" \\\\ there\"");
    string_is("a\nb\rc\td\0e", 9, "\"a\\nb\\rc\\td\\u0000e\"");
    string_is("\x1b[2J\x7f", 5, "\"\\u001b[2J\\u007f\"");
    string_is("Grüße €😀", strlen("Grüße €😀"), "\"Grüße €😀\"");
    string_is("\xc2\x9b", 2, "\"\\u009b\"");
    string_is("a\xe2\x80\xae"
              "b\xf3\xa0\x80\x81",
              9, "\"a\\u202eb\\udb40\\udc01\""); /* reorders, hides */
    string_is("a\xff"
              "b\xc3",
              4, "\"a\\ufffdb\\ufffd\"");
}

static void bytes_are(const char *p, size_t len, const char *expected)
{
    struct buf b = BUF_INIT;

    json_put_bytes(&b, "body", p, len);
    assert_string_equal(b.data, expected);
    buf_done(&b);
}

static void bytes_are_text_where_they_can_be(void **state)
{
    (void)state;
    bytes_are("", 0, "\"body\":\"\"");
    bytes_are("a\0b", 3, "\"body\":\"a\\u0000b\"");
    bytes_are("\xff", 1, "\"body_base64\":\"/w==\"");
    bytes_are("\xff\xfe", 2, "\"body_base64\":\"//4=\"");
    bytes_are("\xff\xfe\xfd", 3, "\"body_base64\":\"//79\"");
    bytes_are("abc\xff", 4, "\"body_base64\":\"YWJj/w==\"");
}

static void any_bytes_come_back_unchanged(void **state)
{
    struct buf b = BUF_INIT;
    char bytes[200];
    uint64_t random = 5;

    (void)state;
    for (int n = 0; n < 5000; n++) {
        size_t len = (size_t)n % sizeof bytes;
        for (size_t i = 0; i < len; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            bytes[i] = (char)(random >> 56 & (n % 3 ? 0xff : 0x7f));
        }
        buf_reset(&b);
        buf_str(&b, "{\"tag\":\"t\",");
        json_put_bytes(&b, "data", bytes, len);
        buf_chr(&b, ',');
        json_put_bytes(&b, "body", bytes, len);
        buf_str(&b, "}");
        assert_int_equal(json_read_object(reader, b.data, b.len, members, COUNT, values, &err), 0);
        for (int i = BODY; i <= DATA; i += DATA - BODY) {
            assert_int_equal(values[i].len, len);
            assert_memory_equal(values[i].text, bytes, len);
            assert_int_equal(values[i].text[len], '\0');
        }
    }
    buf_done(&b);
}

static void utf8_is_judged_exactly(void **state)
{
    static const struct {
        const char *bytes;
        size_t len, chars, bad;
    } rows[] = {
        {"", 0, 0, SIZE_MAX},
        {"0123456789abcdef", 16, 16, SIZE_MAX},
        {"0123456789abcdeü", 17, 16, SIZE_MAX},
        {"01234567ü89abcdef€", 21, 18, SIZE_MAX},
        {"0123456789abcde\xff", 16, 15, 15},
        {"\xff", 1, 0, 0},
        {"aa\xc0\x80", 4, 2, 2},
        {"aaa\xed\xa0\x80", 6, 3, 3},
        {"aaaa\xf4\x90\x80\x80", 8, 4, 4},
        {"ok\xe2\x82", 4, 2, 2},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t chars = 99, bad = SIZE_MAX;
        assert_int_equal(json_utf8_valid(rows[i].bytes, rows[i].len, &chars, &bad),
                         rows[i].bad == SIZE_MAX);
        assert_int_equal(chars, rows[i].chars);
        assert_int_equal(bad, rows[i].bad);
    }
}

static void an_object_is_read_by_its_table(void **state)
{
    (void)state;
    assert_int_equal(
        read_line(
            " { \"id\" : -9223372036854775808 , \"tag\":\"Gr\\u00fc\\u00dfe\", \"live\":true, \"body\":\"a\\u0000b\" }\r\n"),
        0);
    assert_string_equal(values[TAG].text, "Grüße");
    assert_int_equal(values[TAG].len, 7);
    assert_true(values[ID].present && values[ID].number == INT64_MIN);
    assert_int_equal(values[LIVE].number, 1);
    assert_int_equal(values[BODY].len, 3);
    assert_memory_equal(values[BODY].text, "a\0b", 4);
    assert_false(values[DATA].present);
    assert_int_equal(read_line("{\"tag\":\"x\",\"id\":9223372036854775807,\"live\":false}"), 0);
    assert_true(values[ID].number == INT64_MAX);
    assert_true(values[LIVE].present && values[LIVE].number == 0);
    assert_false(values[BODY].present);
}

static void null_counts_as_absent(void **state)
{
    (void)state;
    assert_int_equal(
        read_line("{\"tag\":\"x\",\"body\":null,\"body_base64\":\"eA==\",\"id\":null}"), 0);
    assert_string_equal(values[BODY].text, "x");
    assert_false(values[ID].present);
    refuses("{\"tag\":null}", "\"tag\" is missing");
}

static void what_does_not_fit_the_table_is_refused(void **state)
{
    (void)state;
    refuses("{}", "\"tag\" is missing");
    refuses("{\"tag\":1}", "\"tag\" must be a string");
    refuses("{\"tag\":[\"x\"]}", "\"tag\" must be a string");
    refuses("{\"tag\":\"a\\u0000b\"}", "\"tag\" must not contain a NUL character");
    refuses("{\"tag\":\"x\",\"id\":\"1\"}", "\"id\" must be an integer");
    refuses("{\"tag\":\"x\",\"id\":1.0}", "\"id\" must be an integer");
    refuses("{\"tag\":\"x\",\"id\":9223372036854775808}", "too big integer at column");
    refuses("{\"tag\":\"x\",\"live\":1}", "\"live\" must be true or false");
    refuses("{\"tag\":\"x\",\"body\":{\"a\":1}}", "\"body\" must be a string");
    refuses("{\"tag\":\"x\",\"boddy\":\"\"}", "unknown member \"boddy\" (did you mean \"body\"?)");
    refuses("{\"tag\":\"x\",\"frobnicate\":\"\"}", "unknown member \"frobnicate\"");
    refuses("{\"tag\":\"x\",\"\":\"\"}", "unknown member \"\"");
    refuses("{\"tag\":\"x\",\"tag_base64\":\"eA==\"}", "unknown member \"tag_base64\"");
    refuses("{\"tag\":\"x\",\"tag\":\"y\"}", "duplicate object key at column 16");
    refuses("{\"tag\":\"x\",\"body\":\"x\",\"body_base64\":\"eA==\"}",
            "\"body\" and \"body_base64\" cannot be combined");
}

static void what_is_not_one_object_is_refused(void **state)
{
    (void)state;
    refuses("", "\"{\" expected at column 1");
    refuses("  ", "\"{\" expected at column 3");
    refuses("[{\"tag\":\"x\"}]", "\"{\" expected at column 1");
    refuses("null", "not a JSON object");
    refuses("{\"tag\":\"x\"", "malformed JSON");
    refuses("{\"tag\":\"x\"} {\"tag\":\"y\"}", "malformed JSON: end of file expected at column 13");
    refuses("{\"tag\":\"x\",}", "malformed JSON");
    refuses("{'tag':'x'}", "malformed JSON");
    refuses("{\"tag\":\"\xff\"}", "malformed JSON");
    refuses("{\"tag\":\"\\ud800\"}", "malformed JSON");
    refuses("\xef\xbb\xbf{\"tag\":\"x\"}", "\"{\" expected at column 1");
    assert_int_equal(
        json_read_object(reader, "\0{\"tag\":\"x\"}", 12, members, COUNT, values, &err), ERR_DATA);
}

static void a_fault_does_not_quote_the_text(void **state)
{
    (void)state;
    refuses("{\"tag\":\"x\" \"s3cret\"}", "malformed JSON");
    assert_null(strstr(err.text, "s3cret"));
}

static void base64_is_strict(void **state)
{
    static const char *const bad[] = {"eA",       "eA=", "eA==\\n", "e A=", "eB==", "eHl=",
                                      "eHh=eHh=", "=",   "====",    "A===", "-_-_", "ü123"};
    char line[80];

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        strcpy(line, "{\"tag\":\"x\",\"body_base64\":\"");
        strcat(strcat(line, bad[i]), "\"}");
        refuses(line, "\"body_base64\" is not base64");
    }
    assert_int_equal(read_line("{\"tag\":\"x\",\"body_base64\":\"\",\"data_base64\":\"eHk=\"}"), 0);
    assert_true(values[BODY].present && values[BODY].len == 0);
    assert_string_equal(values[DATA].text, "xy");
}

static void hostile_lines_do_no_harm(void **state)
{
    struct buf b = BUF_INIT;

    (void)state;
    buf_str(&b, "{\"tag\":");
    for (int i = 0; i < 100000; i++)
        buf_chr(&b, '[');
    refuses(b.data, "malformed JSON: maximum parsing depth reached");
    buf_reset(&b);
    buf_str(&b, "{\"");
    for (int i = 0; i < 10000; i++)
        buf_chr(&b, 'k');
    buf_str(&b, "\":1}");
    refuses(b.data, "unknown member \"kkkk");
    buf_done(&b);
    json_reader_free(NULL);
}

#define WITH_READER(test) cmocka_unit_test_setup_teardown(test, open_reader, close_reader)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strings_are_escaped),
        cmocka_unit_test(bytes_are_text_where_they_can_be),
        WITH_READER(any_bytes_come_back_unchanged),
        cmocka_unit_test(utf8_is_judged_exactly),
        WITH_READER(an_object_is_read_by_its_table),
        WITH_READER(null_counts_as_absent),
        WITH_READER(what_does_not_fit_the_table_is_refused),
        WITH_READER(what_is_not_one_object_is_refused),
        WITH_READER(a_fault_does_not_quote_the_text),
        WITH_READER(base64_is_strict),
        WITH_READER(hostile_lines_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
