/* Crontabs of Debian's packages and of public repositories, as Debian's cron reads them, and 1,000
 * firings of each line: test/data/crontabs.tbl, which test/cron/crontabs made. What is otherwise
 * here has to be said. */
#include "conf/crontab.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/task.h"
#include "base/text.h"
#include "base/timetable.h"
#include "cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define FROM_AT INT64_C(1795392000000)
#define FIRINGS 1000
#define END_AT INT64_C(2145916800000) /* soon after it, the times of that cron overflow */

static void put_firings(struct buf *b, const struct crontab_entry *e)
{
    const struct timetable_spec spec = {TIMETABLE_CRON, e->expression, "Europe/Berlin",
                                        TASK_TIME_NONE, TASK_TIME_NONE};
    struct timetable *t = timetable_new(&spec, NULL);
    uint64_t digest = TEXT_HASH_INIT;
    int64_t at = FROM_AT - 1;
    int count = 0;

    for (; t && count < FIRINGS && timetable_next(t, at, &at, NULL) && at < END_AT; count++) {
        unsigned char bytes[8];
        for (int i = 0; i < 8; i++)
            bytes[i] = (unsigned char)((uint64_t)at >> 8 * i);
        digest = text_hash(digest, bytes, sizeof bytes);
    }
    timetable_free(t);
    buf_printf(b, " | %d | %016" PRIx64, count, digest);
}

static void put_part(struct buf *b, const char *text)
{
    buf_str(b, " | ");
    if (text)
        text_escape(b, text, strlen(text), 0);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The environment, without what cron adds, in the order of the text. */
static void put_env(struct buf *b, const struct crontab_entry *e)
{
    static const char *const added[] = {"SHELL=/bin/sh", "HOME=/", "PATH=/usr/bin:/bin"};
    char *all[64], *delay = e->spread_minutes ? mem_printf("%u", e->spread_minutes) : NULL;
    const char *const apart[][2] = {
        {"SHELL", e->shell}, {"MAILTO", e->mailto}, {"CRON_TZ", e->zone}, {"RANDOM_DELAY", delay}};
    size_t count = 0;

    for (char **v = e->env; *v; v++)
        all[count++] = mem_strdup(*v);
    for (size_t i = 0; i < sizeof apart / sizeof *apart; i++)
        if (apart[i][1])
            all[count++] = mem_printf("%s=%s", apart[i][0], apart[i][1]);
    qsort(all, count, sizeof *all, by_text);
    for (size_t i = 0; i < count; free(all[i++])) {
        bool own = true;
        for (size_t k = 0; k < sizeof added / sizeof *added; k++)
            own = own && strcmp(all[i], added[k]) != 0;
        if (own)
            put_part(b, all[i]);
    }
    free(delay);
}

static char *describe(const struct crontab_entry *e, bool env)
{
    struct buf b = BUF_INIT;

    buf_printf(&b, "%u", e->line);
    put_firings(&b, e);
    put_part(&b, e->user);
    put_part(&b, e->command);
    put_part(&b, e->input);
    if (env)
        put_env(&b, e);
    return buf_take(&b);
}

/* The name of a case begins with "cron.d: " if its lines name a user. */
static void check(const struct test_case *c)
{
    struct crontab tab;
    size_t len = c->input.len, next = 0;
    unsigned ignored = 0;

    while (strstr(c->name, "(no newline)") && c->input.data[len - 1] == '\n')
        len--;
    crontab_read(c->input.data, len, !strncmp(c->name, "cron.d: ", 8), &tab);
    for (size_t i = 0; i < c->count; i++) {
        unsigned line = (unsigned)strtoul(c->expected[i], NULL, 10);
        bool refused = strstr(c->expected[i], " refused") && !strchr(c->expected[i], '|');
        const struct crontab_entry *e = NULL;
        if (refused && !ignored)
            ignored = line;
        while (next < tab.count && tab.entries[next].line < line)
            next++;
        if (next < tab.count && tab.entries[next].line == line)
            e = &tab.entries[next++];
        if (refused || (e && e->verdict == CRONTAB_REFUSED))
            continue;
        assert_non_null(e);
        if (e->note && strstr(e->note, "carriage return"))
            continue;
        /* of an ignored file, cron does not know the variables */
        char *got = describe(e, !ignored);
        if (!ignored || strncmp(got, c->expected[i], strlen(got)) != 0)
            assert_string_equal(got, c->expected[i]);
        free(got);
    }
    assert_int_equal(tab.ignored, ignored);
    crontab_done(&tab);
}

int main(void)
{
    return cases_run("crontabs.tbl", check, NULL, 0);
}
