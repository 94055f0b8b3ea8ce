/*
 * start.c - a start that fails, or is given up, leaves nothing behind; output is read in turns.
 */
#include "runner/start.h"

#include "runner/notes.h"
#include "runner/stream.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static struct handler handler = {.name = (char *)"t",
                                 .run = (char *)":",
                                 .shell = (char *)"/bin/sh",
                                 .batch = 1,
                                 .max_running = 1,
                                 .cwd = (char *)"/",
                                 .output_limit = 100};
static const struct handlers handlers = {.digest = 5, .items = &handler, .count = 1};

static struct job *job_of(struct table *table, int stdin_fd)
{
    static const uint64_t id = 7;
    const struct message_job m = {
        .tag = "t", .deadline_at = 3600000, .stdin_fd = stdin_fd, .ids = &id, .count = 1};
    struct job *j = job_new(1, &m, 0);

    j->table = table;
    j->plan = &table->plans[0];
    return j;
}

static void a_command_without_shell_syntax_needs_no_shell(void **state)
{
    (void)state;
    static const struct {
        const char *run, *shell, *program;
    } cases[] = {{"/usr/bin/cancel --fast 'a b'", NULL, "/usr/bin/cancel"},
                 {"cancel", NULL, "cancel"},
                 {"/usr/bin/cancel", "/bin/bash", "/bin/bash"},
                 {"cancel | mail", NULL, "/bin/sh"},
                 {"FAST=1 cancel", NULL, "/bin/sh"},
                 {"exit 3", NULL, "/bin/sh"},
                 {" ", NULL, "/bin/sh"}};
    const struct handler kept = handler;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        handler.run = (char *)(uintptr_t)cases[i].run;
        handler.shell = (char *)(uintptr_t)cases[i].shell;
        struct table *table = table_new(&handlers, NULL, NULL);
        assert_string_equal(table->plans[0].argv[0], cases[i].program);
        assert_string_equal(table->plans[0].shell[2], cases[i].run);
        table_free(table);
    }
    handler = kept;
}

/* The body's descriptor is closed once: by then its number may be another file's. */
static void start_without_descriptors_closes_the_body_once(void **state)
{
    (void)state;
    const int body = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    struct proto_out out = {0};
    struct process_context c = {.epoll = epoll_create1(EPOLL_CLOEXEC), .out = &out};
    struct table *table = table_new(&handlers, NULL, NULL);
    struct job *j = job_of(table, body);
    struct rlimit given, none;
    struct err err = {0};

    getrlimit(RLIMIT_NOFILE, &given);
    none = given;
    none.rlim_cur = 3; /* no number below is free */
    setrlimit(RLIMIT_NOFILE, &none);
    int rc = start_job(j, &c, NULL, &err);
    setrlimit(RLIMIT_NOFILE, &given);
    assert_int_equal(rc, ERR_TRANSIENT); /* the tag does not rest */
    assert_int_equal(strncmp(err.text, "pipe: ", 6), 0);
    assert_string_equal(err.text + 6, strerror(EMFILE)); /* C libraries differ */
    assert_int_equal(fcntl(body, F_GETFD), -1);

    assert_int_equal(dup2(0, body), body); /* a file of another thread */
    job_free(j);
    assert_true(fcntl(body, F_GETFD) >= 0);
    assert_int_equal(table->users, 0);

    close(body);
    close(c.epoll);
    proto_out_done(&out);
    table_free(table);
}

/* A later process may get the pid of one that was stuck: a dead runner's poller must not find it.
 */
static void start_that_is_given_up_leaves_no_note(void **state)
{
    (void)state;
    struct proto_out out = {0};
    struct process_context c = {.epoll = epoll_create1(EPOLL_CLOEXEC), .out = &out};
    struct table *table = table_new(&handlers, NULL, NULL);
    struct job *j = job_of(table, -1);
    volatile pid_t note = 0;
    struct err err = {0};
    int64_t next;
    pid_t stuck = fork();

    if (stuck == 0)
        for (;;)
            pause();
    assert_int_equal(start_job(j, &c, &note, &err), 0);
    assert_int_equal(note, NOTES_STARTS);
    struct process *p = j->process;
    atomic_store(&p->launch.stage, LAUNCH_FORKS);
    p->launch.slow = true;
    p->launch.plan->hanging = 1;
    note = stuck;
    assert_false(start_watch(p, 20000, &next, &err)); /* it is killed, which may take a moment */
    assert_int_equal(note, stuck);
    assert_true(start_watch(p, 30000, &next, &err));
    assert_int_equal(err.code, ERR_SYSTEM);
    assert_int_equal(note, NOTES_CLEARED);
    assert_int_equal(waitpid(stuck, NULL, 0), stuck);

    stream_close(p, &c);
    process_leave(p);
    job_free(j);
    process_free(p);
    assert_int_equal(table->users, 0);
    close(c.epoll);
    proto_out_done(&out);
    table_free(table);
}

/* Other handlers, and the link, have their turn in between. */
static void a_stream_is_read_in_turns(void **state)
{
    (void)state;
    static char data[200 * 1024];
    const int turn = 64 * 1024;
    struct proto_out out = {0};
    struct process_context c = {.epoll = epoll_create1(EPOLL_CLOEXEC), .out = &out};
    struct table *table = table_new(&handlers, NULL, NULL);
    struct job *j = job_of(table, -1);
    struct err err = {0};
    int left;

    assert_int_equal(start_job(j, &c, NULL, &err), 0);
    struct process *p = j->process;
    assert_true(fcntl(p->launch.out, F_SETPIPE_SZ, sizeof data) >= (int)sizeof data);
    assert_int_equal(write(p->launch.out, data, sizeof data), sizeof data);
    for (int read = turn; read < (int)sizeof data; read += turn) {
        stream_read(&p->streams[0], &c, (size_t)turn);
        assert_int_equal(ioctl(p->streams[0].fd, FIONREAD, &left), 0);
        assert_int_equal(left, (int)sizeof data - read);
    }

    stream_close(p, &c);
    process_free(p);
    job_free(j);
    close(c.epoll);
    proto_out_done(&out);
    table_free(table);
}

/* Whether handlers of that account get DQ_CONFIG. */
static bool is_told(const char *user, const char *config)
{
    char shell[] = "/bin/sh", run[] = ":";
    struct handler h = {.shell = shell, .run = run, .user = (char *)user};
    const struct handlers one = {.items = &h, .count = 1};
    struct table *table = table_new(&one, NULL, config);
    struct err err = {0};
    struct setup *s = setup_new(&table->plans[0], &err);
    bool told = false;

    assert_non_null(s);
    for (size_t i = 0; i < s->env_count; i++)
        told |= strncmp(s->env[i], "DQ_CONFIG=", 10) == 0 && strcmp(s->env[i] + 10, config) == 0;
    setup_free(s);
    table_free(table);
    return told;
}

static void who_may_read_the_configuration_is_told_its_path(void **state)
{
    char dir[] = "/tmp/dq-start.XXXXXX", path[64];

    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/dq.ini", dir);
    assert_false(is_told(NULL, path));
    close(open(path, O_CREAT | O_WRONLY, 0600));
    assert_true(is_told(NULL, path));
    if (geteuid() == 0) {
        assert_false(is_told("nobody", path)); /* the directory is closed, too */
        assert_int_equal(chmod(path, 0644), 0);
        assert_false(is_told("nobody", path));
        assert_int_equal(chmod(dir, 0755), 0);
        assert_true(is_told("nobody", path));
        assert_int_equal(chmod(path, 0640), 0);
        assert_false(is_told("nobody", path));
        assert_int_equal(chown(path, 0, 65534), 0); /* its group */
        assert_true(is_told("nobody", path));
        assert_int_equal(chown(path, 65534, 65534), 0);
        assert_int_equal(chmod(path, 0044), 0); /* the owner alone may not */
        assert_false(is_told("nobody", path));
    }
    unlink(path);
    rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_may_read_the_configuration_is_told_its_path),
        cmocka_unit_test(a_command_without_shell_syntax_needs_no_shell),
        cmocka_unit_test(start_without_descriptors_closes_the_body_once),
        cmocka_unit_test(start_that_is_given_up_leaves_no_note),
        cmocka_unit_test(a_stream_is_read_in_turns),
    };

    return cmocka_run_group_tests_name("start", tests, NULL, NULL);
}
