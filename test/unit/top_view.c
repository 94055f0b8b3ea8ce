/* The lines of dq top: they show what matters first, and hold nothing unsafe. */
#include "cli/show/top_view.h"

#include "base/mem.h"
#include "base/text.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

static void add(struct top_data *d, const char *name, const char *why, struct top_tag t)
{
    t.name = mem_strdup(name);
    t.why = mem_strdup(why);
    d->tags[d->count++] = t;
}

static struct top_data sample(void)
{
    struct top_data d = {
        .alive = 2, .dqds = 2, .running = 36, .slots = 64, .done = 212, .failed = 9};

    d.done_steps[9] = d.done_steps[8] = 1;
    d.tags = mem_zero(3, sizeof *d.tags);
    add(&d, "slow.export", "max_running 4 is full",
        (struct top_tag){.running = 4, .due = 1995, .late_ms = 1781000});
    add(&d, "flaky.pay", "",
        (struct top_tag){.running = 2, .late_ms = -1, .done = 88, .failed = 9.04});
    add(&d, "\x1b[31mevil 日本", "\n\x07",
        (struct top_tag){.due = 5000000, .due_sampled = true, .late_ms = 300});
    return d;
}

static void starts(struct buf *b, const char *want)
{
    if (!b->data || strncmp(b->data, want, strlen(want)) != 0)
        print_error("not \"%s\" but \"%s\"\n", want, b->data ? b->data : "");
    assert_true(b->data && strncmp(b->data, want, strlen(want)) == 0);
    buf_reset(b);
}

static void lines_are_as_in_the_manual(void **state)
{
    struct top_data d = sample();
    struct buf b = BUF_INIT;

    (void)state;
    top_view_title(&b, "left", "right", 20);
    starts(&b, "left           right");
    top_view_summary(&b, &d);
    starts(
        &b,
        "dqd 2 of 2 alive   handlers 36 of 64   failed 0   done/s 212         ██   failed/s 9.0 ");
    d.kept = 5;
    d.kept_idle = 3;
    top_view_summary(&b, &d);
    starts(&b, "dqd 2 of 2 alive   handlers 36 of 64   kept 5, 3 idle   failed 0   done/s 212 ");
    d.tags[0].took_p50_ms = 2000;
    d.tags[0].took_p95_ms = 61500;
    d.tags[1].took_p50_ms = d.tags[1].took_p95_ms = -1;
    top_view_heading(&b, &d, 110);
    starts(&b, "TAG                RUN      DUE    LATE DONE/S FAIL/S  TOOK50  TOOK95  WHY");
    top_view_tag(&b, &d, &d.tags[0], 110);
    starts(
        &b,
        "slow.export          4     1995  29m41s      0      0      2s    1m1s  max_running 4 is full");
    top_view_tag(&b, &d, &d.tags[1], 110);
    starts(&b, "flaky.pay            2        0       -     88    9.0       -       -  ");
    top_view_heading(&b, &d, 80);
    starts(&b, "TAG                RUN      DUE    LATE DONE/S FAIL/S  WHY");
    top_view_tag(&b, &d, &d.tags[0], 80);
    starts(&b, "slow.export          4     1995  29m41s      0      0  max_running 4 is full");
    top_view_tag(&b, &d, &d.tags[1], 80);
    starts(&b, "flaky.pay            2        0       -     88    9.0  ");
    top_view_tag(&b, &d, &d.tags[2], 80);
    starts(&b, "\\x1B[31mevil 日本    0 ~5000000   300ms      0      0  \\n\\x07");
    buf_done(&b);
    top_view_free(&d);
}

static void a_reason_has_room_beside_any_name(void **state)
{
    struct top_data d = {.tags = mem_zero(1, sizeof *d.tags)};
    struct buf b = BUF_INIT;
    char name[100] = "";

    (void)state;
    memset(name, 'x', sizeof name - 1);
    add(&d, name, "", (struct top_tag){0});
    for (unsigned width = 96; width <= 130; width++) {
        top_view_heading(&b, &d, width);
        assert_true(strstr(b.data, "WHY") - b.data <= width - 28);
        buf_reset(&b);
    }
    buf_done(&b);
    top_view_free(&d);
}

static void nothing_in_a_line_acts_on_a_terminal(void **state)
{
    struct top_data d = sample();
    struct buf b = BUF_INIT;

    (void)state;
    for (unsigned width = 0; width < 210; width++) {
        for (int line = 0; line < 6; line++) {
            buf_reset(&b);
            if (line == 0)
                top_view_title(&b, "dq top by late", "prod  db1/dq  18:01:07", width);
            else if (line == 1)
                top_view_summary(&b, &d);
            else if (line == 2)
                top_view_heading(&b, &d, width);
            else
                top_view_tag(&b, &d, &d.tags[line - 3], width);
            for (size_t i = 0; i < b.len; i++)
                assert_true((unsigned char)b.data[i] >= ' ' && b.data[i] != 0x7f);
        }
    }
    buf_done(&b);
    top_view_free(&d);
}

static void tags_are_sorted_by_each_column(void **state)
{
    static const char *const first[TOP_SORT_COUNT] = {
        [TOP_SORT_LATE] = "slow.export", [TOP_SORT_DUE] = "\x1b[31mevil 日本",
        [TOP_SORT_RUN] = "slow.export",  [TOP_SORT_DONE] = "flaky.pay",
        [TOP_SORT_FAILED] = "flaky.pay", [TOP_SORT_TAG] = "\x1b[31mevil 日本"};
    struct top_data d = sample();

    (void)state;
    for (enum top_sort by = 0; by < TOP_SORT_COUNT; by++) {
        top_view_sort(&d, by);
        assert_string_equal(d.tags[0].name, first[by]);
        assert_non_null(top_view_sorts[by]);
        for (size_t i = 0; i < d.count; i++)
            d.tags[i].paused = !strcmp(d.tags[i].name, first[by]);
        top_view_sort(&d, by);
        assert_string_equal(d.tags[d.count - 1].name, first[by]);
        d.tags[d.count - 1].paused = false;
    }
    top_view_free(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_as_in_the_manual),
        cmocka_unit_test(a_reason_has_room_beside_any_name),
        cmocka_unit_test(nothing_in_a_line_acts_on_a_terminal),
        cmocka_unit_test(tags_are_sorted_by_each_column),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
