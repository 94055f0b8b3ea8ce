/* The states of a task, the ways between them, and what a tag or a key may be. */
#include "base/task.h"
#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

static void every_event_has_its_row(void **state)
{
    static const struct {
        enum task_event event;
        unsigned from;
        enum task_status to;
        int attempt_change;
        bool new_ladder, unstarted, keeps_first;
        enum task_due due;
        enum task_history history;
    } rows[TASK_EVENT_COUNT] = {
        {TASK_CLAIM, TASK_BIT(TASK_PENDING), TASK_RUNNING, 1, false, false, false, DUE_KEPT,
         HISTORY_NONE},
        {TASK_SUCCEED, TASK_BIT(TASK_RUNNING), TASK_DONE, 0, false, false, false, DUE_KEPT,
         HISTORY_OPTIONAL},
        {TASK_TRY_LATER, TASK_BIT(TASK_RUNNING), TASK_PENDING, 0, false, false, false, DUE_RETRIED,
         HISTORY_ALWAYS},
        {TASK_SNOOZE, TASK_BIT(TASK_RUNNING), TASK_PENDING, -1, false, false, true, DUE_RETRIED,
         HISTORY_OPTIONAL},
        {TASK_GIVE_UP, TASK_BIT(TASK_RUNNING), TASK_FAILED, 0, false, false, false, DUE_KEPT,
         HISTORY_ALWAYS},
        {TASK_AGAIN, TASK_BIT(TASK_RUNNING), TASK_PENDING, 0, true, false, false, DUE_GIVEN,
         HISTORY_NONE},
        {TASK_GIVE_BACK, TASK_BIT(TASK_RUNNING), TASK_PENDING, -1, false, true, false, DUE_KEPT,
         HISTORY_IF_ERROR},
        {TASK_TAKE_BACK, TASK_BIT(TASK_RUNNING), TASK_PENDING, 0, false, false, false, DUE_APART,
         HISTORY_ALWAYS},
        {TASK_CANCEL, TASK_LIVE, TASK_CANCELLED, 0, false, false, false, DUE_KEPT, HISTORY_ALWAYS},
        {TASK_EXPIRE, TASK_BIT(TASK_PENDING), TASK_CANCELLED, 0, false, false, false, DUE_KEPT,
         HISTORY_NONE},
        {TASK_RETRY, TASK_FINISHED, TASK_PENDING, 0, true, false, false, DUE_GIVEN, HISTORY_NONE},
        {TASK_RESCHEDULE, TASK_BIT(TASK_PENDING), TASK_PENDING, 0, false, false, false, DUE_GIVEN,
         HISTORY_NONE},
    };

    (void)state;
    for (size_t i = 0; i < TASK_EVENT_COUNT; i++) {
        const struct task_transition *t = task_transition(rows[i].event);
        assert_int_equal(t->event, rows[i].event);
        assert_int_equal(t->from, rows[i].from);
        assert_int_equal(t->to, rows[i].to);
        assert_int_equal(t->attempt_change, rows[i].attempt_change);
        assert_int_equal(t->new_ladder, rows[i].new_ladder);
        assert_int_equal(t->unstarted, rows[i].unstarted);
        assert_int_equal(t->keeps_first, rows[i].keeps_first);
        assert_int_equal(t->due, rows[i].due);
        assert_int_equal(t->history, rows[i].history);
    }
}

static void a_running_task_is_only_entered_by_a_claim(void **state)
{
    (void)state;
    for (int e = 0; e < TASK_EVENT_COUNT; e++) {
        const struct task_transition *t = task_transition((enum task_event)e);
        assert_int_equal(t->to == TASK_RUNNING, e == TASK_CLAIM);
        if (t->from & TASK_FINISHED)
            assert_int_equal(e, TASK_RETRY);
    }
}

static void names_and_numbers_go_both_ways(void **state)
{
    static const char *const statuses[] = {"pending", "done", "failed", "running", "cancelled"};

    (void)state;
    for (int i = 0; i < TASK_STATUS_COUNT; i++) {
        assert_string_equal(task_status_name(i), statuses[i]);
        assert_int_equal(task_status_parse(statuses[i]), i);
    }
    assert_int_equal(task_status_parse("canceled"), TASK_CANCELLED);
    assert_int_equal(task_status_parse("Pending"), -1);
    assert_int_equal(task_status_parse(""), -1);
    assert_string_equal(task_status_name(-1), "unknown");
    assert_string_equal(task_status_name(TASK_STATUS_UNKNOWN), "unknown");
    for (int i = 0; i < OUTCOME_COUNT; i++)
        assert_int_equal(task_outcome_parse(task_outcome_name(i)), i);
    assert_string_equal(task_outcome_name(OUTCOME_LEASE_EXPIRED), "lease-expired");
    assert_string_equal(task_outcome_name(OUTCOME_COUNT), "?");
    assert_int_equal(task_outcome_parse("gone"), -1);
}

static void a_task_owns_its_memory_and_can_be_done_twice(void **state)
{
    struct task t;

    (void)state;
    task_init(&t);
    assert_int_equal(t.body_size, SIZE_MAX);
    assert_int_equal(t.exit_code, -1);
    assert_true(t.expected_at == TASK_TIME_NONE && t.update_at == TASK_TIME_NONE &&
                t.lease_until_at == TASK_TIME_NONE);
    t.tag = mem_strdup("mail");
    t.body = mem_dup("a\0b", 3);
    t.output = mem_dup("out", 3);
    task_done(&t);
    assert_null(t.tag);
    task_done(&t);
}

#define RULE                                                                                       \
    "; a tag has no white space, control or invisible characters, quotes, backslashes, commas, * or ?"

static void tag_is(const char *tag, size_t len, const char *complaint)
{
    struct err err = {0};
    int rc = task_check_tag(tag, len, &err);

    assert_int_equal(rc, complaint ? ERR_DATA : 0);
    if (complaint)
        assert_string_equal(err.text, complaint);
}

static void a_bad_tag_is_refused_with_its_rule(void **state)
{
    char tag[TASK_TAG_MAX * 4 + 2];

    (void)state;
    tag_is("order.cancel-unpaid", 19, NULL);
    tag_is("Grüße", strlen("Grüße"), NULL);
    tag_is("two words", 9, "a tag must not contain white space: byte 4 is U+0020" RULE);
    tag_is("mail ", 5, "a tag must not contain white space: byte 5 is U+0020" RULE);
    tag_is("a\xc2\xa0", 3, "a tag must not contain white space: byte 2 is U+00A0" RULE);
    tag_is("\xe2\x80\x83z", 4, "a tag must not contain white space: byte 1 is U+2003" RULE);
    tag_is("z\xe3\x80\x80", 4, "a tag must not contain white space: byte 2 is U+3000" RULE);
    tag_is("bob's", 5, "a tag must not contain quotes: byte 4 is U+0027" RULE);
    tag_is("a\"", 2, "a tag must not contain quotes: byte 2 is U+0022" RULE);
    tag_is("`a", 2, "a tag must not contain quotes: byte 1 is U+0060" RULE);
    tag_is("a\\b", 3, "a tag must not contain backslashes: byte 2 is U+005C" RULE);
    tag_is("a*", 2,
           "a tag must not contain commas or the wildcards * and ?: byte 2 is U+002A" RULE);
    tag_is("a?", 2,
           "a tag must not contain commas or the wildcards * and ?: byte 2 is U+003F" RULE);
    tag_is("a,b", 3,
           "a tag must not contain commas or the wildcards * and ?: byte 2 is U+002C" RULE);
    tag_is("", 0, "a tag must not be empty");
    tag_is("-o", 2, "a tag must not begin with \"-\" (byte 1)");
    tag_is("a\nb", 3, "a tag must not contain control characters: byte 2 is U+000A" RULE);
    tag_is("ab\0", 3, "a tag must not contain control characters: byte 3 is U+0000" RULE);
    tag_is("\x7f", 1, "a tag must not contain control characters: byte 1 is U+007F" RULE);
    tag_is("ä\xc2\x9f", 4, "a tag must not contain control characters: byte 3 is U+009F" RULE);
    tag_is("ok\xff", 3, "a tag must be valid UTF-8: byte 3 is not");
    tag_is("cut\xc3", 4, "a tag must be valid UTF-8: byte 4 is not");
    for (size_t i = 0; i < sizeof tag - 2; i += 4)
        memcpy(tag + i, "😀", 4);
    tag_is(tag, TASK_TAG_MAX * 4, NULL); /* characters count, not bytes */
    tag[TASK_TAG_MAX * 4] = 'x';
    tag_is(tag, TASK_TAG_MAX * 4 + 1, "a tag may have at most 128 characters, this one has 129");
}

static void every_white_space_of_unicode_is_one(void **state)
{
    static const char *const spaces[] = {
        "\x20",         "\xc2\xa0",     "\xe1\x9a\x80", "\xe2\x80\x80", "\xe2\x80\x8a",
        "\xe2\x80\xa8", "\xe2\x80\xa9", "\xe2\x80\xaf", "\xe2\x81\x9f", "\xe3\x80\x80"};
    struct err err;
    char text[8];

    (void)state;
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++) {
        int len = snprintf(text, sizeof text, "a%s", spaces[i]);
        assert_int_equal(task_check_tag(text, (size_t)len, &err), ERR_DATA);
        assert_non_null(strstr(err.text, "a tag must not contain white space: byte 2"));
        assert_int_equal(task_check_key(text, (size_t)len, &err), ERR_DATA);
        assert_non_null(strstr(err.text, "a key must not end with white space: byte 2"));
        len = snprintf(text, sizeof text, "%sa", spaces[i]);
        assert_int_equal(task_check_key(text, (size_t)len, &err), ERR_DATA);
    }
}

static void a_tag_has_no_invisible_characters(void **state)
{
    /* of each range one, and the last of all */
    static const char *const hidden[] = {
        "\xc2\xad",         "\xcd\x8f",        "\xd8\x9c",         "\xe1\x85\x9f",
        "\xe1\x9e\xb4",     "\xe1\xa0\x8e",    "\xe2\x80\x8b",     "\xe2\x80\xae",
        "\xe2\x81\xa6",     "\xe3\x85\xa4",    "\xef\xb8\x8f",     "\xef\xbb\xbf",
        "\xef\xbe\xa0",     "\xef\xbf\xb9",    "\xf0\x9b\xb2\xa0", "\xf0\x9d\x85\xba",
        "\xf3\xa0\x81\xa1", "\xf3\xa0\xbf\xbf"};
    struct err err;
    char text[8];

    (void)state;
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++) {
        int len = snprintf(text, sizeof text, "a%sb", hidden[i]);
        assert_int_equal(task_check_tag(text, (size_t)len, &err), ERR_DATA);
        assert_non_null(strstr(err.text, "a tag must not contain invisible characters: byte 2"));
        assert_int_equal(task_check_tag_glob(text, (size_t)len, &err), ERR_DATA);
        assert_int_equal(task_check_key(text, (size_t)len, &err), 0);
    }
    tag_is("ä\xef\xbf\xbd\xf3\xb0\x80\x80", 9, NULL);
}

static void a_key_may_begin_with_a_dash_and_be_longer(void **state)
{
    struct err err;
    char key[TASK_KEY_MAX + 1];

    (void)state;
    memset(key, '-', sizeof key);
    assert_int_equal(task_check_key(key, TASK_KEY_MAX, &err), 0);
    assert_int_equal(task_check_key(key, TASK_KEY_MAX + 1, &err), ERR_DATA);
    assert_string_equal(err.text, "a key may have at most 255 characters, this one has 256");
    assert_int_equal(task_check_key("", 0, &err), ERR_DATA);
    assert_int_equal(task_check_key("two words, 'or' *", 17, &err), 0);
    assert_int_equal(task_check_key("k ", 2, &err), ERR_DATA);
    assert_string_equal(err.text, "a key must not end with white space: byte 2 is U+0020");
    assert_int_equal(task_check_key("\xe3\x80\x80k", 4, &err), ERR_DATA);
    assert_string_equal(err.text, "a key must not begin with white space: byte 1 is U+3000");
    assert_int_equal(task_check_key("a\tb", 3, &err), ERR_DATA);
}

static void a_handlers_name_may_have_wildcards(void **state)
{
    struct err err;

    (void)state;
    assert_int_equal(task_check_tag_glob("mail.*", 6, &err), 0);
    assert_int_equal(task_check_tag_glob("mail.*?", 7, &err), 0);
    assert_int_equal(task_check_tag_glob("mail *", 6, &err), ERR_DATA);
    assert_string_equal(
        err.text,
        "a tag must not contain white space: byte 5 is U+0020; a tag has no white space, control or invisible"
        " characters, quotes, backslashes or commas");
    static const char *const bad[] = {"a\\*", "a,b", "'a'", "\"a\"", "`a`", "-*", "a\x7f"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(task_check_tag_glob(bad[i], strlen(bad[i]), &err), ERR_DATA);
}

static void trailing_blanks_of_a_tag_do_not_count(void **state)
{
    (void)state;
    assert_int_equal(task_tag_length("mail  ", 6), 4);
    assert_int_equal(task_tag_length("  ", 2), 0);
    assert_int_equal(task_tag_length("a b", 3), 3);
    assert_true(task_tag_glob("mail ", "mail"));
    assert_true(task_tag_glob("m* ", "mail"));
    assert_false(task_tag_glob("mail x", "mail"));
}

static void globs_match_whole_tags(void **state)
{
    static const struct {
        const char *pattern, *tag;
        bool match;
    } rows[] = {
        {"mail", "mail", true},
        {"mail", "mails", false},
        {"sms\nmail", "mail", true},
        {"m?l\nma*\nsms", "mail", true},
        {"sms \nmail", "sms", true},
        {"a\nb", "a\nb", false},
        {"a\nb", "c", false},
        {"\n", "", true},
        {"mail", "mai", false},
        {"", "", true},
        {"*", "", true},
        {"*", "anything", true},
        {"mail.*", "mail.welcome", true},
        {"mail.*", "mail.", true},
        {"mail.*", "mail", false},
        {"*.cancel", "order.cancel", true},
        {"*.cancel", "order.cancelled", false},
        {"a*b*c", "aXXbYYc", true},
        {"a*b*c", "aXXcYYb", false},
        {"a*b*c", "abbbcbc", true},
        {"**a**", "bab", true},
        {"?", "x", true},
        {"?", "", false},
        {"?", "xy", false},
        {"?", "ü", true},
        {"??", "ü", false},
        {"*?", "ü", true},
        {"*??", "ü", false},
        {"gr?n", "grün", true},
        {"[ab]", "a", false},
        {"[ab]", "[ab]", true},
        {"\\*", "*", false},
        {"\\*", "\\x", true},
        {"*aab", "aaaab", true},
        {"*ab*ab*ab", "ababab", true},
        {"*ab*ab*ab", "abab", false},
        {"*a*a*a*a*a*a*a*a*b",
         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (task_tag_glob(rows[i].pattern, rows[i].tag) != rows[i].match)
            fail_msg("\"%s\" against \"%s\"", rows[i].pattern, rows[i].tag);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_event_has_its_row),
        cmocka_unit_test(a_running_task_is_only_entered_by_a_claim),
        cmocka_unit_test(names_and_numbers_go_both_ways),
        cmocka_unit_test(a_task_owns_its_memory_and_can_be_done_twice),
        cmocka_unit_test(a_bad_tag_is_refused_with_its_rule),
        cmocka_unit_test(every_white_space_of_unicode_is_one),
        cmocka_unit_test(a_tag_has_no_invisible_characters),
        cmocka_unit_test(a_key_may_begin_with_a_dash_and_be_longer),
        cmocka_unit_test(a_handlers_name_may_have_wildcards),
        cmocka_unit_test(trailing_blanks_of_a_tag_do_not_count),
        cmocka_unit_test(globs_match_whole_tags),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
