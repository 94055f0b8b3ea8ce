/* How many tasks of a tag may start, when to look again, and why: each row is a test. */
#include "base/hours.h"
#include "base/limit.h"
#include "base/task.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/param.h>
#include <cmocka.h>

#include "table_rows.h"

static struct hours *hours;
static int64_t horizon_ms;

static bool read_stored(char *text, struct limit *l)
{
    struct err err;

    *l = (struct limit){LIMIT_NONE};
    hours_free(hours);
    hours = NULL;
    horizon_ms = 0;
    for (char *word; (word = strsep(&text, " "));) {
        if (!strncmp(word, "running=", 8))
            l->running = (uint32_t)strtoul(word + 8, NULL, 10);
        else if (!strcmp(word, "paused=resumed"))
            l->paused_until_at = INT64_MAX;
        else if (!strncmp(word, "paused=", 7))
            l->paused_until_at = strtoll(word + 7, NULL, 10);
        else if (!strncmp(word, "ahead=", 6))
            horizon_ms = strtoll(word + 6, NULL, 10);
        else if (!strncmp(word, "lead=", 5))
            l->lead_ms = strtoll(word + 5, NULL, 10);
        else if (!strncmp(word, "reason=", 7))
            l->reason = l->hold_reason = word + 7;
        else if (!strcmp(word, "held=never"))
            l->held_until_at = INT64_MAX;
        else if (!strncmp(word, "held=", 5))
            l->held_until_at = strtoll(word + 5, NULL, 10);
        else if (!strcmp(word, "full"))
            l->rate_full = true;
        else if (!strcmp(word, "probed"))
            l->probed = true;
        else if (!strncmp(word, "breaker=", 8))
            l->breaker = (uint32_t)strtoul(word + 8, NULL, 10);
        else if (!strncmp(word, "name=", 5))
            l->name = word + 5;
        else if (!strncmp(word, "rate=", 5) && rate_parse(word + 5, &l->rate, &err) < 0)
            return false;
        else if (!strncmp(word, "next=", 5))
            l->next_us = strtoll(word + 5, NULL, 10) * 1000;
        else if (!strncmp(word, "hours=", 6) && hours_parse(word + 6, "UTC", &hours, &err) < 0)
            return false;
        else if (!strncmp(word, "hours=", 6))
            l->hours = hours;
        else if (!strncmp(word, "rate=", 5))
            continue;
        else if (strcmp(word, "-") != 0)
            return false;
    }
    return true;
}

static int64_t read_instant(const char *text, int64_t now_at)
{
    return !strcmp(text, "now")      ? now_at
           : !strcmp(text, "change") ? INT64_MAX
                                     : strtoll(text, NULL, 10);
}

static int64_t read_since(const char *text)
{
    return !strcmp(text, "always") ? -1
           : !strcmp(text, "none") ? INT64_MAX
                                   : strtoll(text, NULL, 10);
}

static bool check_row(char **cell, const char *where)
{
    uint64_t may = strcmp(cell[4], "any") ? strtoull(cell[4], NULL, 10) : UINT64_MAX;
    int64_t now_at = strtoll(cell[3], NULL, 10);
    struct buf words = BUF_INIT;
    struct limit l;

    if (!read_stored(cell[1], &l)) {
        print_error("%s: what is stored?\n", where);
        return false;
    }
    struct limit_answer a = limit_ask(&l, strtoull(cell[2], NULL, 10), now_at, horizon_ms);
    limit_put(&words, &l, &a, now_at);
    const char *text = words.len ? words.data : "-";
    bool right = a.may == may && a.again_at == read_instant(cell[5], now_at) &&
                 !strcmp(text, cell[6]) &&
                 MAX(limit_since(&l, now_at), -1) == read_since(cell[7]) &&
                 (a.why == LIMIT_OPEN) == (a.may > 0);
    if (!right)
        print_error("%s: %ju may start, again at %jd: %s; late since %jd\n", where,
                    (uintmax_t)a.may, (intmax_t)a.again_at, text,
                    (intmax_t)limit_since(&l, now_at));
    buf_done(&words);
    return right;
}

static void a_locked_limit_is_worded_as_in_every_program(void **state)
{
    const struct limit_answer a = {.why = LIMIT_LOCKED};
    struct buf words = BUF_INIT;

    (void)state;
    limit_put(&words, &(struct limit){0}, &a, 0);
    assert_string_equal(words.data, LIMIT_LOCKED_TEXT);
    buf_done(&words);
}

static void of_two_dqds_the_greater_limit_holds_and_none_is_the_greatest(void **state)
{
    (void)state;
    assert_int_equal(limit_join(2, 3), 3);
    assert_int_equal(limit_join(3, 2), 3);
    assert_int_equal(limit_join(0, 3), 0);
    assert_int_equal(limit_join(3, 0), 0);
}

int main(void)
{
    const struct CMUnitTest others[] = {
        cmocka_unit_test(a_locked_limit_is_worded_as_in_every_program),
        cmocka_unit_test(of_two_dqds_the_greater_limit_holds_and_none_is_the_greatest),
    };

    return table_run_rows("limits.tbl", 8, check_row, others, 2);
}
