/* Statements as texts with a ? for each value. */
#include "store/row/sql.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static void each_mark_is_a_value_of_its_kind(void **state)
{
    static const unsigned char token[TASK_TOKEN_SIZE] = {0xAB};
    struct buf sql = BUF_INIT;

    (void)state;
    sql_put(&sql, "a ? b ?, ?", SQL_TEXT("x"), SQL_TEXT(NULL), SQL_TAG("t"));
    assert_string_equal(sql.data, "a 'x' b NULL, 't'");
    buf_reset(&sql);
    sql_put(&sql, "?, ?, ?", SQL_INT(-7), SQL_ID(UINT64_MAX), SQL_PART("NOW(?)"));
    assert_string_equal(sql.data, "-7, 18446744073709551615, NOW(?)");
    buf_reset(&sql);
    sql_put(&sql, "?, ?", SQL_TIME(TASK_TIME_NONE), SQL_TIME(1500));
    assert_string_equal(sql.data, "NULL, '1970-01-01 00:00:01.500'");
    buf_reset(&sql);
    sql_put(&sql, "?;?", SQL_TOKEN(token), SQL_FROM_NOW(1500));
    assert_string_equal(sql.data, "x'ab000000000000000000000000000000';"
                                  "UTC_TIMESTAMP(3) + INTERVAL 1500000 MICROSECOND");
    buf_reset(&sql);
    sql_put(&sql, "none");
    assert_string_equal(sql.data, "none");
    buf_done(&sql);
}

static void put(int what)
{
    struct buf sql = BUF_INIT;

    if (what == 0)
        sql_put(&sql, "? and ?", SQL_INT(1));
    else if (what == 1)
        sql_put(&sql, "?", SQL_INT(1), SQL_INT(2));
    else if (what == 2)
        sql_put(&sql, "?");
    else
        sql_put(&sql, "none", SQL_INT(1));
    buf_done(&sql);
}

static void a_wrong_number_of_values_aborts(void **state)
{
    (void)state;
    for (int what = 0; what < 4; what++) {
        pid_t pid = fork();
        int status;

        if (!pid) {
            setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
            signal(SIGABRT, SIG_DFL);
            put(what);
            _exit(0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_mark_is_a_value_of_its_kind),
        cmocka_unit_test(a_wrong_number_of_values_aborts),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
