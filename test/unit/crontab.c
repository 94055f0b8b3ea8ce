/* Crontabs: what is made of each line (test/data/crontab.tbl), and what no table can hold. */
#include "conf/crontab.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/text.h"
#include "cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void put_part(struct buf *b, const char *name, const char *value)
{
    if (!value)
        return;
    buf_printf(b, " | %s", name);
    text_escape(b, value, strlen(value), 0);
}

/* "2 taken backup-db | 30 2 * * * | user root | zone Europe/Berlin | run COMMAND | input TEXT |
 * ..." */
static char *describe(const struct crontab_entry *e)
{
    struct buf b = BUF_INIT;

    buf_printf(&b, "%u %s", e->line, crontab_verdict_name(e->verdict));
    if (e->verdict != CRONTAB_REFUSED) {
        buf_printf(&b, " %s | %s", e->name, e->expression);
        put_part(&b, "zone ", e->zone);
        put_part(&b, "user ", e->user);
        put_part(&b, "run ", e->command);
        put_part(&b, "input ", e->input);
        put_part(&b, "shell ", e->shell);
        put_part(&b, "mailto ", e->mailto);
        for (char **variable = e->env; *variable; variable++)
            put_part(&b, "", *variable);
        if (e->spread_minutes)
            buf_printf(&b, " | spread %u", e->spread_minutes);
    }
    put_part(&b, "# ", e->note);
    return buf_take(&b);
}

/* The name of a case begins with "cron.d: " if its lines name a user. */
static void check(const struct test_case *c)
{
    struct crontab tab;
    size_t len = c->input.len;

    while (strstr(c->name, "(no newline)") && c->input.data[len - 1] == '\n')
        len--;
    crontab_read(c->input.data, len, !strncmp(c->name, "cron.d: ", 8), &tab);
    for (size_t i = 0; i < tab.count && i < c->count; i++) {
        char *got = describe(&tab.entries[i]);
        assert_string_equal(got, c->expected[i]);
        free(got);
    }
    for (size_t i = c->count; i < tab.count; i++)
        print_error("=> %s\n", describe(&tab.entries[i]));
    if (tab.ignored) {
        char *got = mem_printf("ignored because of line %u", tab.ignored);
        if (tab.count + 1 != c->count)
            print_error("=> %s\n", got);
        else
            assert_string_equal(got, c->expected[tab.count]);
        free(got);
    }
    assert_int_equal(tab.count + !!tab.ignored, c->count);
    crontab_done(&tab);
}

static void a_thousand_equal_lines_have_a_thousand_names(void **state)
{
    const bool brief = getenv("DQ_TEST_SHORT"); /* memcheck is slow */
    const size_t lines = brief ? 100 : 1000;
    struct buf text = BUF_INIT;
    struct crontab tab;

    (void)state;
    for (size_t i = 0; i < lines; i++)
        buf_str(&text, "* * * * * /bin/a-2\n");
    crontab_read(text.data, text.len, false, &tab);
    assert_int_equal(tab.count, lines);
    assert_string_equal(tab.entries[0].name, "a-2");
    assert_string_equal(tab.entries[1].name, "a-2-2");
    assert_string_equal(tab.entries[lines - 1].name, brief ? "a-2-100" : "a-2-1000");
    crontab_done(&tab);
    buf_done(&text);
}

int main(void)
{
    const struct CMUnitTest fixed[] = {
        cmocka_unit_test(a_thousand_equal_lines_have_a_thousand_names),
    };
    return cases_run("crontab.tbl", check, fixed, sizeof fixed / sizeof *fixed);
}
