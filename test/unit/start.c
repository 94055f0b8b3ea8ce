/*
 * start.c - a start that fails before anything was forked leaves nothing behind.
 */
#include "runner/start.h"

#include "base/mem.h"
#include "runner/finish.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

static struct handler handler = {.name = (char *)"t",
                                 .run = (char *)":",
                                 .shell = (char *)"/bin/sh",
                                 .batch = 1,
                                 .max_running = 1,
                                 .cwd = (char *)"/",
                                 .output_limit = 100};
static const struct handlers handlers = {.digest = 5, .items = &handler, .count = 1};

/* The body's descriptor is closed once: by then its number may be another file's. */
static void start_without_descriptors_closes_the_body_once(void **state)
{
    (void)state;
    static const uint64_t id = 7;
    const struct message_job m = {
        .tag = "t", .stdin_fd = open("/dev/zero", O_RDONLY | O_CLOEXEC), .ids = &id, .count = 1};
    struct proto_out out = {0};
    struct job_context c = {.epoll = epoll_create1(EPOLL_CLOEXEC), .out = &out};
    struct table *table = table_new(&handlers, NULL);
    struct job *j = job_new(1, &m, 0);
    struct rlimit given, none;
    struct err err = {0};

    j->table = table;
    j->plan = &table->plans[0];
    getrlimit(RLIMIT_NOFILE, &given);
    none = given;
    none.rlim_cur = 3; /* no number below is free */
    setrlimit(RLIMIT_NOFILE, &none);
    int rc = start_job(j, &c, NULL, &err);
    setrlimit(RLIMIT_NOFILE, &given);
    assert_int_equal(rc, ERR_SYSTEM);
    assert_string_equal(err.text, "pipe: Too many open files");
    assert_int_equal(fcntl(m.stdin_fd, F_GETFD), -1);

    assert_int_equal(dup2(0, m.stdin_fd), m.stdin_fd); /* a file of another thread */
    finish_return(j, &c, true, err.text);
    job_free(j);
    assert_true(fcntl(m.stdin_fd, F_GETFD) >= 0);
    assert_int_equal(table->users, 0);

    close(m.stdin_fd);
    close(c.epoll);
    proto_out_done(&out);
    table_free(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(start_without_descriptors_closes_the_body_once),
    };

    return cmocka_run_group_tests_name("start", tests, NULL, NULL);
}
