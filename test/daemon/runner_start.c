/*
 * link_start.c - what a handler finds when it starts, and what becomes of a job that cannot.
 */
#include "runner_rig.h"

#include "base/buf.h"
#include "base/mem.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void check_body(struct rig *r, const char *body, size_t len)
{
    char name[32];
    uint32_t job = rig_send_body(r, "keep", body, len);
    const struct rig_report *end = rig_end(r, job);

    assert_int_equal(end->m.result.outcome, OUTCOME_DONE);
    snprintf(name, sizeof name, "body.%llu", (unsigned long long)end->m.result.id);
    FILE *f = fopen(rig_path(r, name), "r");
    assert_non_null(f);
    char *got = mem_alloc(len + 2);
    assert_int_equal(fread(got, 1, len + 2, f), len);
    assert_memory_equal(got, body, len);
    free(got);
    fclose(f);
}

static void body_arrives_byte_for_byte(void **state)
{
    (void)state;
    const size_t big = 10 << 20;
    char every[256], *large = mem_alloc(big);
    struct rig r;

    rig_open(&r, "handlers:\n  keep:\n    run: cat >@DIR@/body.$DQ_ID\n", 2);
    for (int i = 0; i < 256; i++)
        every[i] = (char)i;
    for (size_t i = 0; i < big; i++)
        large[i] = (char)(i * 2654435761u >> 13);
    check_body(&r, every, sizeof every);
    check_body(&r, "", 0);
    check_body(&r, "x", 1);
    check_body(&r, large, big);
    free(large);
    rig_close(&r);
}

static void body_that_is_never_read_costs_nothing(void **state)
{
    (void)state;
    const size_t big = 10 << 20;
    char *large = mem_zero(1, big);
    struct rig r;

    rig_open(&r, "handlers:\n  t: {run: 'exit 0'}\n", 2);
    uint32_t job = rig_send_body(&r, "t", large, big);
    assert_int_equal(rig_end(&r, job)->m.result.outcome, OUTCOME_DONE);
    free(large);
    rig_close(&r);
}

static void empty_stdin_without_a_body(void **state)
{
    (void)state;
    struct rig r;

    rig_open(&r, "handlers:\n  t: {run: 'wc -c'}\n", 2);
    assert_string_equal(rig_end(&r, rig_send(&r, "t"))->output, "0\n");
    rig_close(&r);
}

static int by_text(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;

    return strcmp(*x, *y);
}

/* The lines of text, sorted, joined again; in place of text. */
static void sort_lines(char *text)
{
    char *lines[64], *copy = mem_strdup(text), *at = copy;
    size_t n = 0;

    for (char *line; (line = strsep(&at, "\n")) && n < 64;)
        if (*line)
            lines[n++] = line;
    qsort(lines, n, sizeof *lines, by_text);
    *text = 0;
    for (size_t i = 0; i < n; i++)
        text = stpcpy(stpcpy(text, lines[i]), "\n");
    free(copy);
}

static void environment_is_exact_and_clean(void **state)
{
    (void)state;
    struct rig r;
    struct message_job j;

    setenv("MYSQL_PWD", "secret", 1);
    setenv("LD_LIBRARY_PATH", "/nonexistent", 1);
    setenv("TZ", "Europe/Vienna", 1);
    rig_open(
        &r,
        "defaults:\n  env: {SHOP: main, LANG: de_AT.UTF-8}\n"
        "handlers:\n  t:\n    run: [env]\n    env: {HOME: /srv/shop, USER: u, LOGNAME: u, SHELL: /bin/dash}\n",
        2);
    rig_fill(&r, &j, "t");
    const uint64_t id = UINT64_MAX;
    j.ids = &id;
    j.key = "$(reboot) \"'`\xc3\xa9";
    j.run = UINT32_MAX;
    j.attempt = 3;
    j.token = 99;
    const struct rig_report *end = rig_end(&r, rig_put(&r, &j));
    sort_lines(end->output);
    assert_string_equal(end->output,
                        "DQ_ATTEMPT=3\n"
                        "DQ_EXPECTED_TIME=2026-09-21T14:13:20.123Z\n"
                        "DQ_ID=18446744073709551615\n"
                        "DQ_KEY=$(reboot) \"'`\xc3\xa9\n"
                        "DQ_MAX_ATTEMPTS=10\n"
                        "DQ_REPLY_FD=3\n"
                        "DQ_RUN_ID=18446744073709551615-4294967295\n"
                        "DQ_TAG=t\n"
                        "DQ_TOKEN=99\n"
                        "HOME=/srv/shop\n"
                        "LANG=de_AT.UTF-8\n"
                        "LOGNAME=u\n"
                        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n"
                        "SHELL=/bin/dash\n"
                        "SHOP=main\n"
                        "TZ=Europe/Vienna\n"
                        "USER=u\n");
    rig_close(&r);
    unsetenv("TZ");
    unsetenv("MYSQL_PWD");
    unsetenv("LD_LIBRARY_PATH");
}

static void no_descriptor_is_inherited(void **state)
{
    (void)state;
    struct rig r;
    int extra = open("/etc/passwd", O_RDONLY), high = dup2(extra, 200);

    assert_true(extra > 2 && high == 200);
    rig_open(&r, "handlers:\n  t: {run: 'ls /proc/self/fd; readlink /proc/$$/fd/0'}\n", 4);
    rig_send(&r, "t"); /* its pipes are open while the next one starts */
    uint32_t job = rig_send_body(&r, "t", "x", 1);
    /* 3: DQ_REPLY_FD; 4: ls's own */
    assert_string_equal(rig_end(&r, job)->output, "0\n1\n2\n3\n4\n/memfd:dq-body (deleted)\n");
    rig_close(&r);
    close(extra);
    close(high);
}

static void process_attributes(void **state)
{
    (void)state;
    struct rig r;
    struct rlimit files;
    char want[128];

    signal(SIGPIPE, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    getrlimit(RLIMIT_NOFILE, &files);
    const struct rlimit low = {500, files.rlim_max};
    setrlimit(RLIMIT_NOFILE, &low);
    rig_open(
        &r,
        "handlers:\n  t:\n    cwd: /usr\n    umask: '027'\n    nice: 5\n"
        "    run: pwd; umask; ulimit -n; nice; grep -Ec 'Sig[BI][a-z]*:.*[08]0{7}$' /proc/self/status;" /* 8: libc's own */
        " set -- $(cat /proc/$$/stat); echo $(($1 == $5)) $(($1 == $6)) $$\n",
        2);
    setrlimit(RLIMIT_NOFILE, &files);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
    uint32_t job = rig_send(&r, "t");
    const char *got = rig_end(&r, job)->output;
    snprintf(want, sizeof want, "/usr\n0027\n500\n%d\n2\n1 1 %d\n",
             getpriority(PRIO_PROCESS, 0) + 5,
             (int)rig_find(&r, MESSAGE_STARTED, job)->m.started.pid);
    assert_string_equal(got, want);
    rig_close(&r);
}

static void list_is_executed_without_a_shell(void **state)
{
    (void)state;
    struct rig r;

    rig_open(&r, "handlers:\n  t: {run: [printf, '%s|', '$(reboot)', '-rf', '; exit 3']}\n", 2);
    assert_string_equal(rig_end(&r, rig_send(&r, "t"))->output, "$(reboot)|-rf|; exit 3|");
    rig_close(&r);
}

/* As sh(1) says: what the kernel cannot execute is a script. It is where cwd says. */
static void program_that_a_shell_could_run_is_run(void **state)
{
    (void)state;
    struct rig r;
    FILE *f = fopen("script", "w");

    assert_non_null(f);
    fputs("printf '%s|' \"$PWD\" \"$@\"\n", f);
    assert_int_equal(fchmod(fileno(f), 0755), 0);
    fclose(f);
    char *dir = realpath(".", NULL), *file, *want;
    assert_true(asprintf(&file, "handlers:\n  t: {run: ./script a 'b c', cwd: %s}\n", dir) > 0);
    assert_true(asprintf(&want, "%s|a|b c|", dir) > 0);
    rig_open(&r, file, 2);
    assert_string_equal(rig_end(&r, rig_send(&r, "t"))->output, want);
    rig_close(&r);
    unlink("script");
    free(dir);
    free(file);
    free(want);
}

static void job_that_cannot_start_is_returned_with_the_reason(void **state)
{
    (void)state;
    static const struct {
        const char *tag, *want;
    } cases[] = {
        {"cwd", "cwd /nonexistent/dir: No such file or directory"},
        {"absent", "exec /nonexistent/program: No such file or directory"},
        {"data", "exec /etc/passwd: Permission denied"},
        {"unknown", "exec dq-no-such-program: No such file or directory"},
        {"shell", "exec /nonexistent/sh: No such file or directory"},
        {"typo", "exit status 127 (not found): "},
        {"mode", "exit status 126 (not executable): "},
        {"batch", "exit status 127 (not found)"},
    };
    struct rig r;

    rig_open(&r,
             "handlers:\n"
             "  cwd: {run: ':', cwd: /nonexistent/dir}\n"
             "  absent: {run: [/nonexistent/program]}\n"
             "  data: {run: [/etc/passwd]}\n"
             "  unknown: {run: [dq-no-such-program]}\n"
             "  shell: {run: ':', shell: /nonexistent/sh}\n"
             "  typo: {run: dq-no-such-program}\n"
             "  mode: {run: /etc/passwd}\n"
             "  batch: {run: exit 127, batch: 5}\n"
             "  fine: {run: ':'}\n",
             4);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint32_t job = rig_send(&r, cases[i].tag);
        const struct rig_report *back = rig_wait(&r, MESSAGE_RETURNED, job);
        assert_true(back->m.returned.cannot_start);
        assert_non_null(back->error);
        assert_memory_equal(back->error, cases[i].want, strlen(cases[i].want));
        assert_null(rig_find(&r, MESSAGE_ENDED, job));
        assert_null(rig_find(&r, MESSAGE_RESULT, job));
    }
    assert_int_equal(rig_end(&r, rig_send(&r, "fine"))->m.result.outcome, OUTCOME_DONE);
    rig_close(&r);
}

/* The runner's own limit, lowered while it runs. */
static void limit_files(struct rig *r, rlim_t limit)
{
    struct rlimit files;

    rig_ping(r);
    assert_int_equal(prlimit(link_pid(r->link), RLIMIT_NOFILE, NULL, &files), 0);
    files.rlim_cur = limit;
    assert_int_equal(prlimit(link_pid(r->link), RLIMIT_NOFILE, &files, NULL), 0);
}

static void too_many_open_files_gives_jobs_back(void **state)
{
    (void)state;
    struct rig r;
    size_t back = 0;

    rig_open(&r, "handlers:\n  t: {run: sleep 1000, max_running: 100}\n  u: {run: ':'}\n", 100);
    limit_files(&r, 24);
    for (size_t i = 0; i < 20; i++)
        rig_send(&r, "t");
    while (rig_count(&r, MESSAGE_STARTED) + rig_count(&r, MESSAGE_RETURNED) < 20)
        rig_ping(&r);
    for (uint32_t job = 1; job <= 20; job++) {
        const struct rig_report *e = rig_find(&r, MESSAGE_RETURNED, job);
        if (!e)
            continue;
        back++;
        assert_true(e->m.returned.cannot_start);
        assert_string_equal(e->error, "pipe: Too many open files");
    }
    assert_in_range(back, 1, 19);
    for (uint32_t job = 1; job <= 20; job++)
        link_send_kill(r.link, job, MESSAGE_KILL_CANCELLED);
    while (rig_count(&r, MESSAGE_ENDED) < 20 - back)
        rig_ping(&r);
    assert_int_equal(rig_end(&r, rig_send(&r, "u"))->m.result.outcome, OUTCOME_DONE);
    rig_close(&r);
}

static uint32_t send_id(struct rig *r, const char *tag)
{
    struct message_job j;
    char line[32];
    uint64_t id;

    rig_fill(r, &j, tag);
    memcpy(&id, j.ids, sizeof id);
    rig_input(&j, line, (size_t)sprintf(line, "%ju\n", (uintmax_t)id));
    uint32_t job = rig_put(r, &j);
    rig_flush(r);
    return job;
}

/* However many starts fail before. The first one's job begins first and ends last of all. */
static void too_many_open_files_ends_two_processes_that_are_idle_longest(void **state)
{
    (void)state;
    enum { KEPT = 5, JOBS = 20 };
    static const char *const tags[KEPT] = {"k0", "k1", "k2", "k3", "k4"};
    char yaml[2000] = "handlers:\n  t: {run: ':'}\n";
    pid_t kept[KEPT];
    struct rig r;

    for (int i = 0; i < KEPT; i++)
        sprintf(
            yaml + strlen(yaml),
            "  k%d:\n    keep: 1\n    kill_grace: 1h\n    run: |\n"
            "      w() { until [ -e @DIR@/$1 ]; do sleep 0.01; done; }\n"
            "      echo '{\"ready\":true}' >&3\n"
            "      while read -r n; do w k%d; echo '{\"id\":'$n',\"result\":\"done\"}' >&3; done\n"
            "      w go\n",
            i, i);
    rig_open(&r, yaml, KEPT + 1);
    for (uint32_t job = 1; job <= KEPT; job++) {
        assert_int_equal(send_id(&r, tags[job - 1]), job);
        kept[job - 1] = rig_wait(&r, MESSAGE_STARTED, job)->m.started.pid;
    }
    for (uint32_t i = 1; i <= KEPT; i++) {
        close(open(rig_path(&r, tags[i % KEPT]), O_CREAT | O_WRONLY, 0600));
        rig_end(&r, i % KEPT + 1);
    }
    rig_ping(&r);
    limit_files(&r, rig_count_proc(&r, "fd"));
    for (int i = 0; i < JOBS; i++)
        rig_send(&r, "t");
    while (rig_count(&r, MESSAGE_RETURNED) + rig_count(&r, MESSAGE_STARTED) < JOBS + KEPT)
        rig_ping(&r);
    close(open(rig_path(&r, "go"), O_CREAT | O_WRONLY, 0600));
    rig_until_gone(&r, kept[1]);
    rig_until_gone(&r, kept[2]);
    rig_ping(&r);
    assert_int_equal(rig_end(&r, rig_send(&r, "t"))->m.result.outcome, OUTCOME_DONE);
    limit_files(&r, 1000);
    for (uint32_t i = 0; i < KEPT; i += i ? 1 : 3)
        assert_int_equal(rig_wait(&r, MESSAGE_STARTED, send_id(&r, tags[i]))->m.started.pid,
                         kept[i]);
    rig_close(&r);
}

/* For how many descriptors the runner's table has room. */
static unsigned table_size(struct rig *r)
{
    char path[64], line[256];
    unsigned size = 0;

    rig_ping(r);
    snprintf(path, sizeof path, "/proc/%d/status", (int)link_pid(r->link));
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    while (!size && fgets(line, sizeof line, f))
        (void)sscanf(line, "FDSize: %u", &size);
    fclose(f);
    return size;
}

/* They would be copied to each process that is started. */
static void a_waiting_job_has_a_descriptor_only_for_a_long_input(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 0, MESSAGE_INPUT_MAX, MESSAGE_INPUT_MAX + 1};
    static char body[MESSAGE_INPUT_MAX + 1];
    struct rig r;
    size_t before = 0;

    rig_open(&r, "handlers:\n  t: {run: 'wc -c; until [ -e @DIR@/go ]; do sleep 0.01; done'}\n", 1);
    for (uint32_t job = 1; job <= 4; job++) {
        assert_int_equal(rig_send_body(&r, "t", body, sizes[job - 1]), job);
        rig_wait(&r, MESSAGE_STARTED, 1);
        rig_ping(&r);
        before = before ? before : rig_count_proc(&r, "fd");
        assert_int_equal(rig_count_proc(&r, "fd"), before + (job == 4));
    }
    close(open(rig_path(&r, "go"), O_CREAT | O_WRONLY, 0600));
    for (uint32_t job = 1; job <= 4; job++)
        assert_int_equal(atoi(rig_end(&r, job)->output), sizes[job - 1]);
    rig_close(&r);
}

/* Growing would make the runner, which has threads, wait for the kernel. */
static void descriptors_of_waiting_jobs_have_room(void **state)
{
    (void)state;
    struct rig r;

    rig_open(&r, "handlers:\n  t: {run: sleep 1000}\n", 1);
    unsigned before = table_size(&r);
    for (size_t i = 0; i < 600; i++) {
        struct message_job j;
        rig_fill(&r, &j, "t");
        j.stdin_fd = rig_memfd("body", 4);
        rig_put(&r, &j);
        rig_flush(&r);
    }
    assert_int_equal(table_size(&r), before);
    link_send_return(r.link);
    link_send_kill(r.link, 1, MESSAGE_KILL_CANCELLED);
    rig_end(&r, 1);
    rig_close(&r);
}

static void lost_descriptors_give_jobs_back(void **state)
{
    (void)state;
    struct rig r;

    rig_open(&r, "handlers:\n  t: {run: ':'}\n", 1);
    limit_files(&r, 12);
    for (size_t i = 0; i < 30; i++) { /* one packet, more descriptors than the runner may have */
        struct message_job j;
        rig_fill(&r, &j, "t");
        j.stdin_fd = rig_memfd("x", 1);
        rig_put(&r, &j);
    }
    while (rig_count(&r, MESSAGE_ENDED) + rig_count(&r, MESSAGE_RETURNED) < 30)
        rig_ping(&r);
    assert_string_equal(rig_wait(&r, MESSAGE_RETURNED, 30)->error, "stdin: Too many open files");
    rig_close(&r);
}

static void user_is_switched_by_root(void **state)
{
    (void)state;
    struct rig r;

    if (geteuid() != 0)
        skip();
    rig_open(
        &r,
        "handlers:\n  t: {run: 'id -un; id -u; id -G; echo $HOME $USER $LOGNAME; grep Cap[EP] /proc/self/status; kill -0 "
        "$PPID', user: nobody}\n"
        "  pdeath: {run: 'kill -9 $PPID; echo still here', user: nobody}\n"
        "  by-name: {run: 'echo one >/dev/stdout; echo two >/dev/stderr; echo >/dev/fd/3', user: nobody}\n",
        2);
    const struct rig_report *end = rig_end(&r, rig_send(&r, "t"));
    assert_non_null(strstr(end->output, "nobody\n65534\n65534\n/nonexistent nobody nobody\n"));
    assert_non_null(strstr(end->output, "CapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n"));
    assert_int_equal(end->m.result.exit_code, 1); /* it may not signal the runner */
    assert_non_null(strstr(rig_end(&r, rig_send(&r, "pdeath"))->output, "still here"));
    assert_string_equal(rig_end(&r, rig_send(&r, "by-name"))->output, "one\ntwo\n");
    rig_close(&r);
}

/* The kernel counts the processes that an account has before it becomes one more: there has to be
 * one. */
static pid_t start_another_of(const char *account)
{
    const struct passwd *pw = getpwnam(account);
    int ready[2];
    char byte;

    assert_non_null(pw);
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (setuid(pw->pw_uid) != 0 || write(ready[1], "", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    return pid;
}

static void process_limit_gives_jobs_back(void **state)
{
    (void)state;
    struct rig r;
    struct rlimit old;

    if (geteuid() != 0)
        skip();
    pid_t other = start_another_of("nobody");
    getrlimit(RLIMIT_NPROC, &old);
    const struct rlimit none = {0, old.rlim_max};
    setrlimit(RLIMIT_NPROC, &none);
    rig_open(&r, "handlers:\n  t: {run: ':', user: nobody}\n", 2);
    setrlimit(RLIMIT_NPROC, &old);
    const struct rig_report *back = rig_wait(&r, MESSAGE_RETURNED, rig_send(&r, "t"));
    assert_true(back->m.returned.cannot_start);
    assert_non_null(strstr(back->error, "Resource temporarily unavailable"));
    rig_close(&r);
    kill(other, SIGKILL);
    waitpid(other, NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(body_arrives_byte_for_byte),
        cmocka_unit_test(body_that_is_never_read_costs_nothing),
        cmocka_unit_test(empty_stdin_without_a_body),
        cmocka_unit_test(environment_is_exact_and_clean),
        cmocka_unit_test(no_descriptor_is_inherited),
        cmocka_unit_test(process_attributes),
        cmocka_unit_test(list_is_executed_without_a_shell),
        cmocka_unit_test(program_that_a_shell_could_run_is_run),
        cmocka_unit_test(job_that_cannot_start_is_returned_with_the_reason),
        cmocka_unit_test(too_many_open_files_gives_jobs_back),
        cmocka_unit_test(too_many_open_files_ends_two_processes_that_are_idle_longest),
        cmocka_unit_test(a_waiting_job_has_a_descriptor_only_for_a_long_input),
        cmocka_unit_test(descriptors_of_waiting_jobs_have_room),
        cmocka_unit_test(lost_descriptors_give_jobs_back),
        cmocka_unit_test(user_is_switched_by_root),
        cmocka_unit_test(process_limit_gives_jobs_back),
    };

    return cmocka_run_group_tests_name("runner: start", tests, NULL, NULL);
}
