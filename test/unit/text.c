/* Text for people: harmless on a terminal, and typos that find their word. */
#include "base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

static void only_well_formed_utf8_is_decoded(void **state)
{
    static const struct {
        const char *bytes;
        size_t len, taken;
        uint32_t c;
    } rows[] = {
        {"", 0, 0, 0},
        {"a", 1, 1, 'a'},
        {"\0", 1, 1, 0},
        {"\x7f", 1, 1, 0x7f},
        {"\xc2\x80", 2, 2, 0x80},
        {"\xdf\xbf", 2, 2, 0x7ff},
        {"\xe0\xa0\x80", 3, 3, 0x800},
        {"\xed\x9f\xbf", 3, 3, 0xd7ff},
        {"\xee\x80\x80", 3, 3, 0xe000},
        {"\xef\xbf\xbf", 3, 3, 0xffff},
        {"\xf0\x90\x80\x80", 4, 4, 0x10000},
        {"\xf4\x8f\xbf\xbf", 4, 4, 0x10ffff},
        {"\x80", 1, 0, 0},     /* continuation first */
        {"\xc0\x80", 2, 0, 0}, /* overlong */
        {"\xc1\xbf", 2, 0, 0},
        {"\xe0\x9f\xbf", 3, 0, 0},
        {"\xf0\x8f\xbf\xbf", 4, 0, 0},
        {"\xed\xa0\x80", 3, 0, 0}, /* surrogates */
        {"\xed\xbf\xbf", 3, 0, 0},
        {"\xf4\x90\x80\x80", 4, 0, 0}, /* above U+10FFFF */
        {"\xf5\x80\x80\x80", 4, 0, 0},
        {"\xff", 1, 0, 0},
        {"\xc3", 1, 0, 0}, /* cut off */
        {"\xe2\x82", 2, 0, 0},
        {"\xf0\x9f\x98", 3, 0, 0},
        {"\xc3(", 2, 0, 0}, /* interrupted */
        {"\xe2(\xac", 3, 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint32_t c = 0;
        assert_int_equal(text_utf8_next(rows[i].bytes, rows[i].len, &c), rows[i].taken);
        assert_int_equal(c, rows[i].c);
    }
}

static void widths_are_those_of_a_terminal(void **state)
{
    (void)state;
    assert_int_equal(text_width("task", 4), 4);
    assert_int_equal(text_width("Grüße", strlen("Grüße")), 5);
    assert_int_equal(text_width("e\xcc\x81", 3), 1);
    assert_int_equal(text_width("延迟任务", strlen("延迟任务")), 8);
    assert_int_equal(text_width("한글", strlen("한글")), 4);
    assert_int_equal(text_width("😀", strlen("😀")), 2);
    assert_int_equal(text_width("🚀⚡⏳✅⭐", strlen("🚀⚡⏳✅⭐")), 10);
    assert_int_equal(text_width("🇩🇪", strlen("🇩🇪")), 2); /* one each */
    assert_int_equal(text_width("日本語ｶﾅ", strlen("日本語ｶﾅ")), 8);
    assert_int_equal(text_width("ไทยที่", strlen("ไทยที่")), 4);
    assert_int_equal(text_width("→±×", strlen("→±×")), 3);
    assert_int_equal(text_width("a\xff", 2), 2);
}

static void escape_is(const char *text, size_t len, size_t max, const char *expected)
{
    struct buf b = BUF_INIT;

    buf_str(&b, "|");
    text_escape(&b, text, len, max);
    assert_string_equal(b.data + 1, expected);
    assert_int_equal(strlen(b.data), b.len);
    buf_done(&b);
}

static void nothing_moves_the_cursor(void **state)
{
    static const char *const rows[][2] = {
        {"plain text", "plain text"},
        {"Grüße 延迟 😀", "Grüße 延迟 😀"},
        {"a\nb\tc\rd", "a\\nb\\tc\\rd"},
        {"\x1b[2J", "\\x1B[2J"},
        {"\x7f", "\\x7F"},
        {"\xc2\x9b"
         "31m",
         "\\u{009B}31m"},
        {"back\\slash", "back\\\\slash"},
        {"\xe2\x80\xae"
         "evil",
         "\\u{202E}evil"},
        {"a\xe2\x80\x8b"
         "b",
         "a\\u{200B}b"},
        {"\xe2\x81\xa6", "\\u{2066}"},
        {"\xe2\x80\xa8", "\\u{2028}"},
        {"\xef\xbb\xbf", "\\u{FEFF}"},
        {"\xf3\xa0\x81\x81", "\\u{E0041}"},
        {"\xff\xfe", "\\xFF\\xFE"},
        {"cut \xe2\x82", "cut \\xE2\\x82"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        escape_is(rows[i][0], strlen(rows[i][0]), 0, rows[i][1]);
    escape_is("a\0b", 3, 0, "a\\x00b");
    escape_is("", 0, 0, "");
    escape_is("", 0, 5, "");
}

static void a_cut_is_shown_and_fits_its_columns(void **state)
{
    (void)state;
    escape_is("12345", 5, 5, "12345");
    escape_is("123456", 6, 5, "1234…");
    escape_is("1234\n", 5, 5, "1234…");
    escape_is("123\n", 4, 5, "123\\n");
    escape_is("延迟任务", strlen("延迟任务"), 8, "延迟任务");
    escape_is("延迟任务", strlen("延迟任务"), 7, "延迟任…");
    escape_is("延迟任务", strlen("延迟任务"), 6, "延迟…");
    escape_is("1234e\xcc\x81", 7, 5, "1234e\xcc\x81");
    escape_is("abc", 3, 1, "…");
}

static void every_byte_string_becomes_valid_harmless_utf8(void **state)
{
    uint64_t random = 3;

    (void)state;
    for (int n = 0; n < 20000; n++) {
        struct buf b = BUF_INIT;
        char bytes[24];
        for (size_t i = 0; i < sizeof bytes; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            bytes[i] = (char)(random >> (n % 2 ? 56 : 40));
        }
        size_t max = (size_t)n % 30;
        text_escape(&b, bytes, sizeof bytes, max);
        assert_true(!max || text_width(b.data, b.len) <= max);
        for (size_t at = 0; at < b.len;) {
            uint32_t c;
            size_t taken = text_utf8_next(b.data + at, b.len - at, &c);
            assert_int_not_equal(taken, 0);
            assert_true(c >= 0x20 && (c < 0x7f || c >= 0xa0));
            at += taken;
        }
        buf_done(&b);
    }
}

static void last_line_is(const char *output, size_t len, size_t max, const char *expected)
{
    struct buf b = BUF_INIT;

    buf_str(&b, ">");
    text_last_line(&b, output, len, max);
    assert_string_equal(b.data + 1, expected);
    assert_int_equal(b.len, 1 + strlen(expected));
    buf_done(&b);
}
#define LAST_LINE(output, max, expected) last_line_is(output, sizeof(output "") - 1, max, expected)

static void the_last_line_of_an_output_is_quoted_as_plain_text(void **state)
{
    (void)state;
    LAST_LINE("", 20, "");
    LAST_LINE("\n \t\r\n", 20, "");
    LAST_LINE("one\ntwo\n\n", 20, "two");
    LAST_LINE("one\n  two \t\n \n", 20, "two");
    LAST_LINE("10%\r20%\rdisk full\r\n", 20, "disk full");
    LAST_LINE("a\0b", 20, "b");
    LAST_LINE("no newline", 20, "no newline");
    LAST_LINE("one\n\033[1;31merror:\033[0m \033]0;title\abad\033[K\n\033[0m\n", 20, "error: bad");
    LAST_LINE("cut \033[3", 20, "cut");
    LAST_LINE("cut \033", 20, "cut");
    LAST_LINE("a\tb\x01\xff\xc2\x9b"
              "31m\xe2\x80\xae.",
              20, "a b???31m?.");
    LAST_LINE("h\xc3\xa4h\xc3\xa4", 6, "h\xc3\xa4h\xc3\xa4");
    LAST_LINE("h\xc3\xa4h\xc3\xa4", 5, "h\xc3\xa4h…");
    LAST_LINE("h\xc3\xa4h\xc3\xa4", 2, "h…");
    LAST_LINE("word word", 6, "word w…");
    LAST_LINE("word word", 5, "word…");
}

static void a_typo_finds_its_word(void **state)
{
    static const char *const words[] = {
        "add", "cancel", "list", "poll_interval", "reschedule", "retry", "show", "slots", "n"};
    static const char *const rows[][2] = {
        {"lst", "list"},
        {"lits", "list"},
        {"LIST", "list"},
        {"cancle", "cancel"},
        {"canel", "cancel"},
        {"retyr", "retry"},
        {"reshedul", "reschedule"},
        {"pol_intervall", "poll_interval"},
        {"poll-interval", "poll_interval"},
        {"slot", "slots"},
        {"ad", "add"},
        {"list", "list"},
    };
    static const char *const strangers[] = {"", "x", "frobnicate", "explain", "cnl", "zz"};
    char longest[200];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_string_equal(text_nearest(rows[i][0], words, sizeof words / sizeof *words),
                            rows[i][1]);
    for (size_t i = 0; i < sizeof strangers / sizeof *strangers; i++)
        assert_null(text_nearest(strangers[i], words, sizeof words / sizeof *words));
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_null(text_nearest(longest, words, sizeof words / sizeof *words));
    assert_null(text_nearest("list", words, 0));
}

/* The published values of FNV-1a, 64 bits. */
static void hashes_are_fnv_1a(void **state)
{
    (void)state;
    assert_true(text_hash(TEXT_HASH_INIT, "", 0) == TEXT_HASH_INIT);
    assert_true(text_hash(TEXT_HASH_INIT, "a", 1) == UINT64_C(0xaf63dc4c8601ec8c));
    assert_true(text_hash(text_hash(TEXT_HASH_INIT, "foobar", 3), "bar", 3) ==
                UINT64_C(0x85944171f73967e8));
}

static void a_shell_reads_one_word(void **state)
{
    static const char *const rows[][2] = {
        {"mail.welcome", "mail.welcome"}, {"a b", "'a b'"}, {"", "''"}, {"$(x)", "'$(x)'"},
        {"it's", "'it'\"'\"'s'"},         {"a*", "'a*'"}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct buf b = BUF_INIT;
        text_shell_word(&b, rows[i][0]);
        assert_string_equal(b.data, rows[i][1]);
        buf_done(&b);
    }
}

/* In damaged text, no more is cut off than a character can have. */
static void text_is_cut_at_a_character(void **state)
{
    (void)state;
    assert_int_equal(text_cut("ab\u20acd", 2), 2);
    assert_int_equal(text_cut("ab\u20acd", 3), 2);
    assert_int_equal(text_cut("ab\u20acd", 4), 2);
    assert_int_equal(text_cut("ab\u20acd", 5), 5);
    assert_int_equal(text_cut("\xf0\x9f\x90\x98", 3), 0);
    assert_int_equal(text_cut("\x80\x80\x80\x80\x80\x80", 5), 2);
    assert_int_equal(text_cut("\x80", 0), 0);
}

static const char *name_of(const void *items, size_t i)
{
    return ((const char *const *)items)[i];
}

static void a_name_has_a_place(void **state)
{
    static const char *const names[] = {"b", "d", "f"};
    static const char wanted[] = "abcdefg";
    bool found;

    (void)state;
    for (size_t i = 0; i < 7; i++) {
        assert_int_equal(text_place(names, 3, name_of, (char[]){wanted[i], 0}, &found), i / 2);
        assert_int_equal(found, i % 2);
    }
    assert_int_equal(text_place(names, 0, name_of, "a", &found), 0);
    assert_false(found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_well_formed_utf8_is_decoded),
        cmocka_unit_test(widths_are_those_of_a_terminal),
        cmocka_unit_test(nothing_moves_the_cursor),
        cmocka_unit_test(a_cut_is_shown_and_fits_its_columns),
        cmocka_unit_test(every_byte_string_becomes_valid_harmless_utf8),
        cmocka_unit_test(the_last_line_of_an_output_is_quoted_as_plain_text),
        cmocka_unit_test(a_typo_finds_its_word),
        cmocka_unit_test(a_shell_reads_one_word),
        cmocka_unit_test(hashes_are_fnv_1a),
        cmocka_unit_test(text_is_cut_at_a_character),
        cmocka_unit_test(a_name_has_a_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
