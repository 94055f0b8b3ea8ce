/*
 * verbs.c - the tables of verbs and options agree with themselves: what the parser and the help
 * texts are made from.
 */
#include "cli/line/option.h"
#include "cli/line/texts.h"
#include "cli/line/verbs.h"

#include "base/task.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Option i of a verb as the parser sees it: its own, then those of every verb. */
static const struct cmd_option *option_at(const struct cmd *cmd, size_t i)
{
    return i < cmd->option_count ? &cmd->options[i] : &option_global[i - cmd->option_count];
}

#define ROW(name) &cmd_##name,
static void test_names_and_letters_of_options_are_unique(void **state)
{
    static const struct cmd *const all[] = {VERBS(ROW) VERBS_SCHEDULE(ROW) NULL};

    (void)state;
    for (size_t v = 0; all[v]; v++) {
        size_t count = all[v]->option_count + option_global_count;
        for (size_t i = 0; i < count; i++) {
            const int letter = option_at(all[v], i)->letter;
            assert_true(!letter || isalpha(letter));
            for (size_t j = i + 1; j < count; j++) {
                const struct cmd_option *a = option_at(all[v], i), *b = option_at(all[v], j);
                if (strcmp(a->name, b->name) == 0 || (a->letter != 0 && a->letter == b->letter))
                    fail_msg("%s: --%s and --%s", all[v]->name, a->name, b->name);
            }
        }
    }
}

static void test_options_are_complete(void **state)
{
    (void)state;
    for (size_t v = 0; verbs_table[v]; v++) {
        const char *lists[] = {verbs_table[v]->exclusive, verbs_table[v]->requires};
        for (size_t l = 0; l < 2; l++) {
            for (const char *s = lists[l]; s && *s; s += strcspn(s, " ,"), s += strspn(s, " ,"))
                for (size_t i = 0, len = strcspn(s, " ,");
                     strncmp(verbs_table[v]->options[i].name, s, len) != 0 ||
                     verbs_table[v]->options[i].name[len];
                     i++)
                    assert_true(i + 1 < verbs_table[v]->option_count);
        }
        for (size_t i = 0; i < verbs_table[v]->option_count + option_global_count; i++) {
            const struct cmd_option *o = option_at(verbs_table[v], i);
            assert_int_equal(!o->arg, o->type == CMD_FLAG);
            assert_int_equal(!!o->choices, o->type == CMD_CHOICE);
            const char *command = i < verbs_table[v]->option_count ? verbs_table[v]->name : "dq";
            assert_int_not_equal(strlen(texts_option(command, o->name)), 0);
            assert_true(i >= verbs_table[v]->option_count ||
                        o->offset < verbs_table[v]->values_size);
        }
    }
}

static void test_names_of_verbs_are_unique(void **state)
{
    (void)state;
    struct err err;
    for (size_t v = 0; verbs_table[v]; v++) {
        assert_ptr_equal(verbs_find(verbs_table[v]->name, &err), verbs_table[v]);
        if (verbs_table[v]->alias)
            assert_ptr_equal(verbs_find(verbs_table[v]->alias, &err), verbs_table[v]);
        const struct texts_help *help = texts_help(verbs_table[v]->name);
        assert_string_equal(help->name, verbs_table[v]->name);
        assert_true(strlen(help->summary) > 0);
        assert_int_not_equal(help->summary[strlen(help->summary) - 1], '.');
    }
}

static void test_a_synonym_of_a_verb_names_it(void **state)
{
    (void)state;
    static const char *const words[][2] = {
        {"log", "events"},       {"history", "events"}, {"unpause", "resume"}, {"kill", "cancel"},
        {"requeue", "retry"},    {"describe", "show"},  {"ps", "pollers"},     {"push", "add"},
        {"delay", "reschedule"}, {"migrate", "init"},   {"tail", "logs"}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        struct err err;
        char wanted[100];
        assert_null(verbs_find(words[i][0], &err));
        snprintf(wanted, sizeof wanted, "unknown command \"%s\": did you mean \"%s\"?", words[i][0],
                 words[i][1]);
        assert_string_equal(err.text, wanted);
        assert_non_null(verbs_find(words[i][1], &err));
    }
}

/* Of several hosts, these may use one that is read-only; but for dq wait, which acts on the answer.
 */
static void test_what_changes_nothing_is_content_with_a_reader(void **state)
{
    static const char writers[] = " add cancel retry reschedule run-now pause resume limit quiet "
                                  "unquiet delete init bench purge import wait ";

    (void)state;
    for (size_t v = 0; verbs_table[v]; v++) {
        char word[40];

        snprintf(word, sizeof word, " %s ", verbs_table[v]->name);
        if ((verbs_table[v]->reads_only || verbs_table[v]->pages) == !!strstr(writers, word))
            fail_msg("%s", verbs_table[v]->name);
    }
}

/* Parses words; the context's values must be freed. */
static int parse(struct cmd_context *c, int argc, const char *const *words, struct err *err)
{
    static char *argv[16];
    *c = (struct cmd_context){.now_at = TASK_TIME_NONE};
    for (int i = 0; i < argc; i++)
        argv[i] = (char *)(uintptr_t)words[i];
    argv[argc] = NULL;
    return option_parse(c, verbs_find, argc, argv, err);
}

static void test_global_options_stand_before_or_after_the_verb(void **state)
{
    (void)state;
    struct cmd_context c;
    struct err err;
    assert_int_equal(
        parse(&c, 7, (const char *const[]){"dq", "-o", "json", "show", "7", "-q", "8"}, &err), 0);
    assert_ptr_equal(c.cmd, &cmd_show);
    assert_int_equal(c.output, OUT_JSON);
    assert_true(c.quiet);
    assert_int_equal(c.operand_count, 2);
    assert_string_equal(c.operands[1], "8");
    cmd_close(&c);
}

static void test_words_after_two_dashes_are_operands(void **state)
{
    (void)state;
    struct cmd_context c;
    struct err err;
    assert_int_equal(parse(&c, 5, (const char *const[]){"dq", "add", "tag", "--", "--in"}, &err),
                     0);
    assert_int_equal(c.operand_count, 2);
    assert_string_equal(c.operands[1], "--in");
    cmd_close(&c);
}

static void test_what_is_relative_needs_a_clock(void **state)
{
    (void)state;
    static const char *const relative[] = {"09:00", "+10m", "tomorrow", "friday 18:00",
                                           "now",   "",     "20:15"};
    static const char *const absolute[] = {"2026-11-21", "2026-11-21 09:00", "2026-11-21T09:00:00Z",
                                           "@1790000000.5"};
    for (size_t i = 0; i < sizeof relative / sizeof relative[0]; i++)
        assert_true(cmd_time_is_relative(relative[i]));
    for (size_t i = 0; i < sizeof absolute / sizeof absolute[0]; i++)
        assert_false(cmd_time_is_relative(absolute[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_and_letters_of_options_are_unique),
        cmocka_unit_test(test_options_are_complete),
        cmocka_unit_test(test_names_of_verbs_are_unique),
        cmocka_unit_test(test_a_synonym_of_a_verb_names_it),
        cmocka_unit_test(test_what_changes_nothing_is_content_with_a_reader),
        cmocka_unit_test(test_global_options_stand_before_or_after_the_verb),
        cmocka_unit_test(test_words_after_two_dashes_are_operands),
        cmocka_unit_test(test_what_is_relative_needs_a_clock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
