/* Wake-ups reach the listeners of their database on this host, and nothing else is touched. */
#include "wake/wake_listen.h"
#include "wake/wake_send.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static char top[] = "/tmp/dq-wake.XXXXXX";
static char dir[64];
static struct wake_listener *listener;

static int begin(void **state)
{
    (void)state;
    snprintf(top, sizeof top, "/tmp/dq-wake.XXXXXX");
    if (!mkdtemp(top))
        return -1;
    snprintf(dir, sizeof dir, "%s/dir", top);
    return wake_listen_open(dir, "dq", &listener, NULL);
}

static int end(void **state)
{
    char command[128];

    (void)state;
    wake_listen_close(listener);
    listener = NULL;
    snprintf(command, sizeof command, "rm -r %s", top);
    return system(command);
}

static bool woken(const struct wake_listener *l)
{
    struct pollfd p = {.fd = wake_listen_fd(l), .events = POLLIN};

    return poll(&p, 1, 0) == 1;
}

static int files(void)
{
    DIR *d = opendir(dir);
    int n = -2; /* . and .. */

    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

static void a_wake_up_reaches_all_listeners_of_its_database(void **state)
{
    struct wake_listener *second = NULL, *other = NULL;

    (void)state;
    assert_int_equal(wake_listen_open(dir, "dq", &second, NULL), 0);
    assert_int_equal(wake_listen_open(dir, "dq2", &other, NULL), 0);
    assert_false(woken(listener));
    wake_send(dir, "dq", false);
    assert_true(woken(listener));
    assert_true(woken(second));
    assert_false(woken(other));
    wake_listen_close(second);
    wake_listen_close(other);
    assert_int_equal(files(), 1);
}

static void taking_takes_all_that_came_and_none_that_comes(void **state)
{
    (void)state;
    for (int i = 0; i < 1000; i++)
        wake_send(dir, "dq", false);
    assert_false(wake_listen_take(listener));
    assert_false(woken(listener));
    assert_false(wake_listen_take(listener));
    wake_send(dir, "dq", false);
    assert_true(woken(listener));
}

static void a_wake_up_says_whether_schedules_have_changed(void **state)
{
    (void)state;
    wake_send(dir, "dq", true);
    wake_send(dir, "dq", false);
    assert_true(woken(listener));
    assert_true(wake_listen_take(listener));
    wake_send(dir, "dq", false);
    assert_false(wake_listen_take(listener));
}

static void nobody_is_woken_where_nobody_listens(void **state)
{
    (void)state;
    wake_send("", "dq", false);
    wake_send("/dev/null", "dq", false);
    wake_send(top, "dq", false);
    assert_false(woken(listener));
}

static void a_file_that_senders_do_not_find_is_noticed(void **state)
{
    char moved[64];

    (void)state;
    snprintf(moved, sizeof moved, "%s/moved", top);
    assert_true(wake_listen_reachable(listener));
    assert_int_equal(rename(dir, moved), 0);
    assert_false(wake_listen_reachable(listener));
    assert_int_equal(close(creat(dir, 0600)), 0);
    assert_false(wake_listen_reachable(listener));
    assert_int_equal(unlink(dir), 0);
    assert_int_equal(mkdir(dir, 0700), 0);
    assert_false(wake_listen_reachable(listener));
    assert_int_equal(rmdir(dir), 0);
    assert_int_equal(rename(moved, dir), 0);
    assert_true(wake_listen_reachable(listener));
}

static void leave(const char *name, int age_s, const char *content)
{
    struct timespec times[2] = {{.tv_sec = time(NULL) - age_s}, {.tv_sec = time(NULL) - age_s}};
    char path[128];
    int fd;

    snprintf(path, sizeof path, "%s/%s", dir, name);
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0444);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, content, strlen(content)), strlen(content));
    assert_int_equal(futimens(fd, times), 0);
    close(fd);
}

static void files_of_dead_processes_are_removed_and_nothing_else(void **state)
{
    struct wake_listener *next = NULL;
    char path[128];
    int fd;

    (void)state;
    leave("wake.dead", 60, "x");
    leave("wake.young", -3600, "");
    leave("wake.content", 60, "xx");
    leave("other", 60, "");
    leave("wake.locked", 60, "");
    snprintf(path, sizeof path, "%s/wake.locked", dir);
    fd = open(path, O_RDONLY);
    assert_int_equal(flock(fd, LOCK_SH), 0);
    assert_int_equal(wake_listen_open(dir, "dq", &next, NULL), 0);
    assert_int_equal(files(), 6);
    snprintf(path, sizeof path, "%s/wake.dead", dir);
    assert_int_equal(access(path, F_OK), -1);
    close(fd);
    wake_listen_close(next);
}

static void a_directory_that_cannot_be_used_is_an_error(void **state)
{
    static const struct {
        const char *dir, *text;
    } cases[] = {{"/proc/none", "No such file or directory"}, {"/dev/null", "Not a directory"}};
    struct wake_listener *l = NULL;
    struct err err;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        memset(&err, 0, sizeof err);
        assert_int_equal(wake_listen_open(cases[i].dir, "dq", &l, &err), ERR_SYSTEM);
        assert_string_equal(err.text, cases[i].text);
        assert_null(l);
    }
    assert_int_equal(wake_listen_check(dir, &err), 0);
    assert_int_equal(wake_listen_check("/nonexistent", &err), 0); /* is created at the start */
    assert_int_equal(wake_listen_check("/dev/null", &err), ERR_SYSTEM);
    assert_string_equal(err.text, "Not a directory");
}

/* Nobody has cleared the directory for long. */
static void a_wake_up_passes_by_files_of_dead_processes(void **state)
{
    (void)state;
    for (int i = 0; i < 3000; i++) {
        char name[32];

        snprintf(name, sizeof name, "wake.%016x.%d", i, i);
        leave(name, 60, "");
    }
    wake_send(dir, "dq", false);
    assert_true(woken(listener));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_wake_up_reaches_all_listeners_of_its_database, begin,
                                        end),
        cmocka_unit_test_setup_teardown(taking_takes_all_that_came_and_none_that_comes, begin, end),
        cmocka_unit_test_setup_teardown(a_wake_up_says_whether_schedules_have_changed, begin, end),
        cmocka_unit_test_setup_teardown(nobody_is_woken_where_nobody_listens, begin, end),
        cmocka_unit_test_setup_teardown(a_file_that_senders_do_not_find_is_noticed, begin, end),
        cmocka_unit_test_setup_teardown(files_of_dead_processes_are_removed_and_nothing_else, begin,
                                        end),
        cmocka_unit_test_setup_teardown(a_wake_up_passes_by_files_of_dead_processes, begin, end),
        cmocka_unit_test_setup_teardown(a_directory_that_cannot_be_used_is_an_error, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
