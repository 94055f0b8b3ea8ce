/* One line an event, under systemd and without. */
#include "base/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "capture.h"

#include <errno.h>
#include <fcntl.h>
#include <regex.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static int real_stderr;
static char text[8192];

static const char *written(void)
{
    rewind(capture);
    text[fread(text, 1, sizeof text - 1, capture)] = '\0';
    capture_clear();
    return text;
}

static bool matches(const char *pattern, const char *string)
{
    regex_t re;

    assert_int_equal(regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB), 0);
    bool match = regexec(&re, string, 0, NULL, 0) == 0;
    regfree(&re);
    return match;
}

/* The journal's stream is named by device and inode of the file that stderr really is. */
static void set_stream(int inode_off)
{
    struct stat st;
    char stream[64];

    assert_int_equal(fstat(STDERR_FILENO, &st), 0);
    snprintf(stream, sizeof stream, "%llu:%llu", (unsigned long long)st.st_dev,
             (unsigned long long)st.st_ino + (unsigned)inode_off);
    setenv("JOURNAL_STREAM", stream, 1);
}

static void an_event_is_one_line_with_time_level_and_name(void **state)
{
    (void)state;
    log_open("dqd", LOG_INFO);
    errno = ENOENT;
    log_event(LOG_INFO, "task done", "id=%d tag=%s", 7, log_quote("mail.welcome"));
    assert_int_equal(errno, ENOENT);
    assert_true(matches(
        "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\\.[0-9]{3}Z info dqd msg=\"task done\" id=7 tag=mail\\.welcome\n$",
        written()));
    log_event(LOG_ERROR, "bare", "%s", "");
    assert_true(matches("error dqd msg=\"bare\"\n$", written()));
}

static void the_journal_gets_a_priority_and_no_time(void **state)
{
    (void)state;
    set_stream(0);
    log_open("dqd", LOG_DEBUG);
    log_event(LOG_WARN, "late", "ms=%d", 12);
    assert_string_equal(written(), "<4>warn dqd msg=\"late\" ms=12\n");
    log_event(LOG_ERROR, "no handler", "tag=x");
    assert_string_equal(written(), "<3>error dqd msg=\"no handler\" tag=x\n");
}

static void a_redirected_stderr_is_no_journal(void **state)
{
    (void)state;
    set_stream(1);
    log_open("dqd", LOG_INFO);
    log_event(LOG_INFO, "x", "a=1");
    assert_true(matches("^[0-9]{4}-.*Z info dqd msg=\"x\" a=1\n$", written()));
    setenv("JOURNAL_STREAM", "nonsense", 1);
    log_open("dqd", LOG_INFO);
    log_event(LOG_INFO, "x", "a=1");
    assert_true(matches("^[0-9]{4}-", written()));
}

static void lines_above_the_level_are_dropped(void **state)
{
    (void)state;
    log_open("dqd", LOG_WARN);
    log_event(LOG_INFO, "dropped", "a=1");
    log_event(LOG_WARN, "kept", "a=1");
    assert_null(strstr(written(), "dropped"));
    assert_non_null(strstr(text, "kept"));
    log_set_level(LOG_DEBUG);
    assert_int_equal(log_level(), LOG_DEBUG);
    log_event(LOG_DEBUG, "now kept", "a=1");
    assert_non_null(strstr(written(), "debug dqd msg=\"now kept\""));
}

static void levels_have_names(void **state)
{
    (void)state;
    assert_int_equal(log_level_parse("error"), LOG_ERROR);
    assert_int_equal(log_level_parse("warn"), LOG_WARN);
    assert_int_equal(log_level_parse("notice"), LOG_NOTE);
    assert_int_equal(log_level_parse("info"), LOG_INFO);
    assert_int_equal(log_level_parse("debug"), LOG_DEBUG);
    assert_int_equal(log_level_parse("verbose"), -1);
    assert_int_equal(log_level_parse(""), -1);
}

static void a_long_line_is_cut_and_stays_one_line(void **state)
{
    char field[4000];

    (void)state;
    memset(field, 'x', sizeof field - 1);
    field[sizeof field - 1] = '\0';
    memcpy(field + 100, "a\nb\x1b", 4);
    log_open("dqd", LOG_INFO);
    log_event(LOG_INFO, "long", "%s", field);
    size_t len = strlen(written());
    assert_int_equal(len, 2000);
    assert_string_equal(text + len - 4, "...\n");
    assert_ptr_equal(strchr(text, '\n'), text + len - 1);
    assert_null(strchr(text, '\x1b'));
}

static void values_are_quoted_only_where_needed(void **state)
{
    char long_text[301];

    (void)state;
    assert_string_equal(log_quote(NULL), "-");
    assert_string_equal(log_quote(""), "\"\"");
    assert_string_equal(log_quote("order.cancel-unpaid"), "order.cancel-unpaid");
    assert_string_equal(log_quote("/srv/dq/run:1"), "/srv/dq/run:1");
    assert_string_equal(log_quote("two words"), "\"two words\"");
    assert_string_equal(log_quote("a=b"), "\"a=b\"");
    assert_string_equal(log_quote("say \"hi\""), "\"say \\\"hi\\\"\"");
    assert_string_equal(log_quote("\""), "\"\\\"\"");
    assert_string_equal(log_quote("line\nbreak\\"), "\"line\\nbreak\\\\\"");
    assert_string_equal(log_quote("\xff"), "\"\\xFF\"");
    memset(long_text, 'y', 300);
    long_text[300] = '\0';
    memcpy(long_text + 199, "ü", 2); /* the cut falls into it */
    const char *quoted = log_quote(long_text);
    assert_int_equal(strlen(quoted), 1 + 199 + strlen("…") + 1);
}

static void eight_quoted_values_fit_into_one_event(void **state)
{
    const char *q[8];

    (void)state;
    for (int i = 0; i < 8; i++) {
        char value[16];
        snprintf(value, sizeof value, "v %d", i);
        q[i] = log_quote(value);
    }
    for (int i = 0; i < 8; i++)
        assert_int_equal(q[i][3], '0' + i);
}

/* Takes the place of stderr; the other end is never read. */
static void take_place(int fd)
{
    unsetenv("JOURNAL_STREAM");
    alarm(120); /* a write that waits would wait for ever */
    real_stderr = dup(STDERR_FILENO);
    dup2(fd, STDERR_FILENO);
    log_open("dqd", LOG_INFO);
}

static void put_back(void)
{
    dup2(real_stderr, STDERR_FILENO);
    close(real_stderr);
    alarm(0);
}

/* Fills it, reads all of it, and looks for the line that counts the others. */
static void check_unread(int reader, int writer)
{
    const int lines = getenv("DQ_TEST_SHORT") ? 4000 : 20000; /* memcheck is slow */
    unsigned long written_lines = 0, lost = 0;
    static char all[4 << 20];
    size_t len = 0;
    ssize_t n;

    take_place(writer);
    for (int i = 0; i < lines; i++)
        log_event(LOG_INFO, "tick", "i=%d", i);
    log_catch_up();
    /* who shares it would not expect that */
    assert_int_equal(fcntl(STDERR_FILENO, F_GETFL) & O_NONBLOCK, 0);
    assert_int_equal(fcntl(reader, F_SETFL, O_NONBLOCK), 0);
    while ((n = read(reader, all + len, sizeof all - 1 - len)) > 0)
        len += (size_t)n;
    all[len] = '\0';
    assert_null(strstr(all, "lost"));
    for (const char *p = all; (p = strstr(p, "msg=\"tick\"")); p++)
        written_lines++;
    log_catch_up();
    log_event(LOG_INFO, "again", "%s", "");
    log_catch_up();
    put_back();
    n = read(reader, all, sizeof all - 1);
    assert_true(n > 0);
    all[n] = '\0';
    assert_int_equal(sscanf(strstr(all, "lines="), "lines=%lu", &lost), 1);
    assert_int_equal(written_lines + lost, lines);
    assert_true(matches(
        "^[^\n]* warn dqd msg=\"log lines were lost because nobody read them\" lines=[0-9]+\n"
        "[^\n]* msg=\"again\"\n$",
        all));
    close(reader);
    close(writer);
}

static void a_pipe_that_nobody_reads_loses_lines_and_says_how_many(void **state)
{
    int fds[2];

    (void)state;
    assert_int_equal(pipe(fds), 0);
    check_unread(fds[0], fds[1]);
}

static void a_socket_that_nobody_reads_loses_lines_and_says_how_many(void **state)
{
    int fds[2];

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    check_unread(fds[0], fds[1]);
}

/* As where the pipe was made by another account. */
static void a_pipe_that_cannot_be_opened_again_is_polled(void **state)
{
    int fds[2];

    (void)state;
    if (geteuid() != 0)
        skip();
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(fchmod(fds[1], 0), 0);
    assert_int_equal(seteuid(65534), 0);
    check_unread(fds[0], fds[1]);
    assert_int_equal(seteuid(0), 0);
}

#define CAPTURED(test) cmocka_unit_test_setup_teardown(test, capture_begin, capture_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CAPTURED(an_event_is_one_line_with_time_level_and_name),
        CAPTURED(the_journal_gets_a_priority_and_no_time),
        CAPTURED(a_redirected_stderr_is_no_journal),
        CAPTURED(lines_above_the_level_are_dropped),
        cmocka_unit_test(levels_have_names),
        CAPTURED(a_long_line_is_cut_and_stays_one_line),
        cmocka_unit_test(values_are_quoted_only_where_needed),
        cmocka_unit_test(a_pipe_that_nobody_reads_loses_lines_and_says_how_many),
        cmocka_unit_test(a_socket_that_nobody_reads_loses_lines_and_says_how_many),
        cmocka_unit_test(a_pipe_that_cannot_be_opened_again_is_polled),
        cmocka_unit_test(eight_quoted_values_fit_into_one_event),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
