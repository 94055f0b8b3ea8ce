/* Files that are replaced as a whole. */
#include "base/replace.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[] = "/tmp/dq-replace.XXXXXX";

static int enter(void **state)
{
    (void)state;
    return mkdtemp(dir) && chdir(dir) == 0 ? 0 : -1;
}

static int leave(void **state)
{
    (void)state;
    return chdir("/") == 0 && rmdir(dir) == 0 ? 0 : -1;
}

static void make(const char *name, time_t age_s)
{
    const struct timespec now_and_then[] = {{.tv_nsec = UTIME_NOW}, {.tv_sec = time(NULL) - age_s}};
    FILE *f = fopen(name, "w");

    assert_non_null(f);
    fclose(f);
    assert_int_equal(utimensat(AT_FDCWD, name, now_and_then, 0), 0);
}

static void check_text(const char *name, const char *expected)
{
    char text[32] = "";
    FILE *f = fopen(name, "r");

    assert_non_null(f);
    (void)!fgets(text, sizeof text, f);
    fclose(f);
    assert_string_equal(text, expected);
}

static void the_text_is_replaced_and_nothing_else_is_left(void **state)
{
    struct err err;
    (void)state;
    assert_int_equal(replace_file("f", "one", 3, 0600, &err), 0);
    assert_int_equal(replace_file("f", "two", 3, 0600, &err), 0);
    check_text("f", "two");
    assert_int_equal(unlink("f"), 0); /* and leave() finds the directory empty */
}

static void what_crashes_have_left_is_deleted(void **state)
{
    static const char *const kept[] = {"f.1.new", "f.new", "f.x.new", "f.1.newer", "g.1.new"};
    struct err err;
    (void)state;
    make("f.1.new", 5); /* another process may be writing it */
    for (size_t i = 1; i < sizeof kept / sizeof kept[0]; i++)
        make(kept[i], 3600);
    make("f.4711.new", 3600);
    assert_int_equal(mkdir("f.2.new", 0700), 0);
    assert_int_equal(replace_file("f", "one", 3, 0600, &err), 0);
    assert_int_not_equal(access("f.4711.new", F_OK), 0);
    make("f.4711.new", 3600);
    char *absolute = NULL;
    assert_true(asprintf(&absolute, "%s/f", dir) > 0);
    assert_int_equal(replace_file(absolute, "two", 3, 0600, &err), 0);
    free(absolute);
    assert_int_not_equal(access("f.4711.new", F_OK), 0);
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
        assert_int_equal(unlink(kept[i]), 0);
    assert_int_equal(rmdir("f.2.new"), 0);
    assert_int_equal(unlink("f"), 0);
}

static void a_failure_keeps_the_old_file(void **state)
{
    struct err err = {0};
    (void)state;
    assert_int_equal(mkdir("f", 0700), 0);
    assert_int_equal(replace_file("f", "one", 3, 0600, &err), ERR_SYSTEM);
    assert_non_null(strstr(err.text, "cannot write f: "));
    assert_int_equal(rmdir("f"), 0);
    assert_int_equal(replace_file("no/f", "one", 3, 0600, &err), ERR_SYSTEM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_text_is_replaced_and_nothing_else_is_left),
        cmocka_unit_test(what_crashes_have_left_is_deleted),
        cmocka_unit_test(a_failure_keeps_the_old_file),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
