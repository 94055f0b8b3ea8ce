/*
 * dq.ini: what is read, what is refused and in which words (test/data/conf.tbl), which file is
 * taken, and whose files are trusted.
 */
#include "conf/conf.h"
#include "conf/conf_load.h"
#include "conf/conf_file.h"

#include "base/buf.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/when.h"
#include "cases.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char *dir; /* of this process's files */

static char *write_file(const char *name, const void *bytes, size_t len, mode_t mode)
{
    char *path = mem_printf("%s/%s", dir, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, len), len);
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
    return path;
}

static const struct conf_key *find_key(const char *dotted)
{
    for (size_t i = 0; i < conf_key_count; i++) {
        const struct conf_key *k = &conf_keys[i];
        size_t len = strlen(k->section);
        if (strncmp(dotted, k->section, len) == 0 && dotted[len] == '.' &&
            strcmp(dotted + len + 1, k->name) == 0)
            return k;
    }
    fail_msg("no key %s", dotted);
    return NULL;
}

/* The value of a key as one would write it; a path below the test's directory begins with @. */
static char *value_text(const struct conf *c, const struct conf_key *k)
{
    const void *field = (const char *)c + k->offset;
    char duration[WHEN_TEXT_SIZE];
    switch (k->type) {
    case CONF_STRING:
    case CONF_PATH: {
        const char *s = *(char *const *)field;
        bool below = strncmp(s, dir, strlen(dir)) == 0;
        return mem_printf("%s%s", below ? "@" : "", below ? s + strlen(dir) : s);
    }
    case CONF_INT:
        return mem_printf("%d", *(const int *)field);
    case CONF_RANGE:
        if (((const int64_t *)field)[1] < ((const int64_t *)field)[0]) {
            char most[WHEN_TEXT_SIZE];
            return mem_printf("%s..%s",
                              when_format_duration(duration, ((const int64_t *)field)[1]),
                              when_format_duration(most, *(const int64_t *)field));
        }
        /* fall through */
    case CONF_DURATION:
    case CONF_AGE:
        return mem_strdup(when_format_duration(duration, *(const int64_t *)field));
    case CONF_ENUM:
        break;
    }
    int value = *(const int *)field;
    for (int i = 0; k->choices[i]; i++)
        if ((strcmp(k->name, "log_level") == 0 ? log_level_parse(k->choices[i]) : i) == value)
            return mem_strdup(k->choices[i]);
    return mem_strdup("?");
}

static void check_values(const struct conf *c, const struct test_case *t)
{
    for (size_t i = 0; i < t->count; i++) {
        char *name = mem_strdup(t->expected[i]);
        char *equals = strstr(name, " =");
        assert_non_null(equals);
        *equals = '\0';
        const char *want = equals[2] == ' ' ? equals + 3 : "";
        char *got = value_text(c, find_key(name));
        if (strcmp(got, want) != 0)
            fail_msg("%s = %s, expected %s", name, got, want);
        free(got);
        free(name);
    }
}

static void check_case(const struct test_case *t)
{
    char *path = write_file("dq.ini", t->input.data, t->input.len, 0600);
    struct conf *c = NULL;
    struct err err = {0};
    assert_true(t->count > 0);
    int rc = conf_load(path, &c, &err);
    if (t->expected[0][0] >= '0' && t->expected[0][0] <= '9') {
        assert_int_equal(rc, ERR_CONFIG);
        assert_int_equal(err.code, ERR_CONFIG);
        assert_null(c);
        cases_check_message(err.text, path, t->expected[0]);
    } else {
        if (rc != 0)
            fail_msg("%s", err.text);
        assert_string_equal(c->path, path);
        check_values(c, t);
    }
    conf_free(c);
    free(path);
}

/* ---- the table ---- */

static void test_every_default_is_written_as_it_is_read(void **state)
{
    (void)state;
    char *path = write_file("dq.ini", "", 0, 0600);
    struct conf *c;
    struct err err;
    assert_int_equal(conf_load(path, &c, &err), 0);
    for (size_t i = 0; i < conf_key_count; i++) {
        char *got = value_text(c, &conf_keys[i]);
        const char *text = *got == '@' ? got + 2 : got;
        if (strcmp(text, conf_keys[i].default_text) != 0)
            fail_msg("[%s] %s: %s, the table says %s", conf_keys[i].section, conf_keys[i].name,
                     text, conf_keys[i].default_text);
        free(got);
    }
    conf_free(c);
    free(path);
}

static void put_all(struct buf *b, const struct conf *c)
{
    const char *section = "";
    for (size_t i = 0; i < conf_key_count; i++) {
        if (strcmp(section, conf_keys[i].section) != 0)
            conf_put_section(b, c, conf_keys[i].section);
        section = conf_keys[i].section;
    }
}

static void test_what_is_put_is_read_again(void **state)
{
    (void)state;
    static const char text[] =
        "[mysql]\nhost = db1, [::1]:3307\nsocket = s.sock\nuser = a b\npassword_file = pw\ntls = verify-ca\n"
        "tls_ca = ca.pem\nread_timeout = 1500ms\ninit_command = SET SESSION wait_timeout = 60, @a = \"x;y\"\n"
        "[dqd]\nslots = 7\npoll_interval = 1250ms\nlog_level = debug\nhistory = all\n"
        "[retention]\ndone = never\nfailed = 36h\n[dq]\noutput = tsv\n";
    char *path = write_file("dq.ini", text, sizeof text - 1, 0600);
    struct conf *first, *second;
    struct buf put = BUF_INIT, again = BUF_INIT;
    struct err err = {0};
    if (conf_load(path, &first, &err) != 0)
        fail_msg("%s", err.text);
    put_all(&put, first);
    free(write_file("dq.ini", put.data, put.len, 0600));
    if (conf_load(path, &second, &err) != 0)
        fail_msg("%s", err.text);
    put_all(&again, second);
    assert_string_equal(put.data, again.data);
    for (size_t i = 0; i < conf_key_count; i++) {
        char *a = value_text(first, &conf_keys[i]), *b = value_text(second, &conf_keys[i]);
        assert_string_equal(a, b);
        free(a);
        free(b);
    }
    conf_free(first);
    conf_free(second);
    buf_done(&put);
    buf_done(&again);
    free(path);
}

/* The sample documents each key once, with its default and the help of the table, and nothing
 * else. */
static void test_the_sample_file_agrees_with_the_table(void **state)
{
    (void)state;
    struct buf want = BUF_INIT;
    const char *section = "";
    for (size_t i = 0; i < conf_key_count; i++) {
        const struct conf_key *k = &conf_keys[i];
        if (strcmp(section, k->section) != 0)
            buf_printf(&want, "[%s]\n", k->section);
        section = k->section;
        buf_printf(&want, "# %s%s\n#%s =%s%s\n", k->help, k->reloadable ? " (reload)" : "", k->name,
                   *k->default_text ? " " : "", k->default_text);
    }
    char *path = mem_printf("%s/etc/dq.ini", getenv("DQ_TOP"));
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    struct buf got = BUF_INIT;
    char line[512];
    bool begun = false;
    while (fgets(line, sizeof line, f)) {
        begun = begun || line[0] == '['; /* the head of the file is free text */
        if (begun && line[0] != '\n')
            buf_str(&got, line);
    }
    fclose(f);
    assert_string_equal(got.data, want.data);
    buf_done(&got);
    buf_done(&want);
    free(path);
}

static void test_the_sample_file_loads(void **state)
{
    (void)state;
    char *sample = mem_printf("%s/etc/dq.ini", getenv("DQ_TOP"));
    struct buf text = BUF_INIT;
    FILE *f = fopen(sample, "r");
    assert_non_null(f);
    for (int ch; (ch = getc(f)) != EOF;)
        buf_chr(&text, (char)ch);
    fclose(f);
    /* as it is, and with every default taken in */
    for (int live = 0; live < 2; live++) {
        for (size_t i = 0; live && i + 1 < text.len; i++)
            if (text.data[i] == '\n' && text.data[i + 1] == '#' && text.data[i + 2] != ' ')
                text.data[i + 1] = ' ';
        char *path = write_file("dq.ini", text.data, text.len, 0600);
        struct conf *c = NULL;
        struct err err;
        if (conf_load(path, &c, &err) != 0)
            fail_msg("%s", err.text);
        assert_int_equal(c->dqd.slots, 32);
        conf_free(c);
        free(path);
    }
    buf_done(&text);
    free(sample);
}

/* ---- which file ---- */

static void make_dir(const char *name)
{
    char *path = mem_printf("%s/%s", dir, name);
    (void)mkdir(path, 0700);
    free(path);
}

static void expect_loaded(const char *explicit_path, int port)
{
    struct conf *c = NULL;
    struct err err;
    if (conf_load(explicit_path, &c, &err) != 0)
        fail_msg("%s", err.text);
    assert_int_equal(c->mysql.port, port);
    assert_true(c->path[0] == '/');
    conf_free(c);
}

static void expect_refused(const char *path, const char *words)
{
    struct conf *c = NULL;
    struct err err = {0};
    assert_int_equal(conf_load(path, &c, &err), ERR_CONFIG);
    assert_null(c);
    if (!strstr(err.text, words))
        fail_msg("\"%s\" lacks \"%s\"", err.text, words);
}

static char *write_port(const char *name, const char *port)
{
    char *text = mem_printf("[mysql]\nport = %s\n", port);
    char *path = write_file(name, text, strlen(text), 0600);
    free(text);
    return path;
}

static void test_the_named_file_wins_then_the_environment_then_the_home(void **state)
{
    (void)state;
    make_dir("xdg");
    make_dir("xdg/dq");
    make_dir(".config");
    make_dir(".config/dq");
    char *named = write_port("named.ini", "1"), *env = write_port("env.ini", "2"),
         *xdg = write_port("xdg/dq/dq.ini", "3"), *home = write_port(".config/dq/dq.ini", "4");
    char *xdg_dir = mem_printf("%s/xdg", dir);
    setenv("HOME", dir, 1);
    setenv("XDG_CONFIG_HOME", xdg_dir, 1);
    setenv("DQ_CONFIG", env, 1);
    expect_loaded(named, 1);
    expect_loaded(NULL, 2);
    unsetenv("DQ_CONFIG");
    expect_loaded(NULL, 3);
    setenv("XDG_CONFIG_HOME", "relative/is/ignored", 1);
    expect_loaded(NULL, 4);
    unsetenv("XDG_CONFIG_HOME");
    expect_loaded(NULL, 4);
    setenv("DQ_CONFIG", "/nowhere/dq.ini", 1);
    expect_refused(NULL, "/nowhere/dq.ini: there is no such configuration file");
    setenv("DQ_CONFIG", "", 1);
    expect_loaded(NULL, 4);
    unsetenv("DQ_CONFIG");
    free(named);
    free(env);
    free(xdg);
    free(home);
    free(xdg_dir);
}

static void test_an_empty_name_is_not_another_file(void **state)
{
    (void)state;
    expect_refused("", "the name of the configuration file is empty");
}

static void test_a_relative_name_is_resolved(void **state)
{
    (void)state;
    char *path = write_port("relative.ini", "5");
    assert_int_equal(chdir(dir), 0);
    expect_loaded("relative.ini", 5);
    expect_loaded("./relative.ini", 5);
    free(path);
}

static void test_a_caller_may_not_care_about_the_words(void **state)
{
    (void)state;
    struct conf *c = NULL;
    char *path = write_file("dq.ini", "[dqd]\nslots = x\n", 16, 0600);
    assert_int_equal(conf_load(path, &c, NULL), ERR_CONFIG);
    assert_null(c);
    free(path);
}

/* ---- whose file ---- */

static void test_a_file_that_others_can_write_is_refused(void **state)
{
    (void)state;
    static const mode_t writable[] = {0620, 0602, 0664, 0666, 0777};
    for (size_t i = 0; i < sizeof writable / sizeof writable[0]; i++) {
        char *path = write_file("open.ini", "", 0, writable[i]);
        expect_refused(path, "others can write to the configuration file");
        expect_refused(path, "chmod go-w");
        free(path);
    }
    char *path = write_file("closed.ini", "", 0, 0644);
    expect_loaded(path, 3306);
    free(path);
}

static void test_what_is_no_regular_file_is_refused(void **state)
{
    (void)state;
    expect_refused(dir, "this is a directory; name the configuration file itself");
    expect_refused("/dev/null", "must be a regular file");
    char *fifo = mem_printf("%s/fifo", dir);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    expect_refused(fifo, "must be a regular file"); /* and does not wait for a writer */
    unlink(fifo);
    free(fifo);
}

static void test_a_file_of_somebody_else_is_refused(void **state)
{
    (void)state;
    if (geteuid() !=
        0) /* only root can give files away; root's own file read by us is the other half */
        return;
    char *path = write_file("foreign.ini", "", 0, 0600);
    assert_int_equal(chown(path, 12345, 12345), 0);
    expect_refused(path, "belongs to user id 12345, who could change it; give it to root");
    unlink(path);
    free(path);
}

static void test_a_huge_file_is_refused(void **state)
{
    (void)state;
    size_t len = 70 * 1024;
    char *bytes = mem_alloc(len);
    memset(bytes, '\n', len);
    char *path = write_file("huge.ini", bytes, len, 0600);
    expect_refused(path, "longer than 64 KiB");
    free(bytes);
    free(path);
}

/* ---- secrets ---- */

static void expect_secret(const void *bytes, size_t len, const char *want)
{
    char *path = write_file("secret", bytes, len, 0600), *secret = NULL;
    struct err err;
    if (conf_file_read_secret(path, &secret, &err) != 0)
        fail_msg("%s", err.text);
    assert_string_equal(secret, want);
    conf_file_wipe_secret(secret);
    free(path);
}

static void expect_no_secret(const void *bytes, size_t len, mode_t mode, const char *words)
{
    char *path = write_file("secret", bytes, len, mode), *secret = NULL;
    struct err err = {0};
    assert_int_equal(conf_file_read_secret(path, &secret, &err), ERR_CONFIG);
    assert_null(secret);
    if (!strstr(err.text, words) || strstr(err.text, "hunter2"))
        fail_msg("\"%s\"", err.text);
    free(path);
}

static void test_a_secret_is_the_first_line(void **state)
{
    (void)state;
    expect_secret("hunter2", 7, "hunter2");
    expect_secret("hunter2\n", 8, "hunter2");
    expect_secret("hunter2\r\nand more\n", 18, "hunter2");
    expect_secret(" a ;#=\"b\" \n", 11, " a ;#=\"b\" "); /* nothing in it is special */
}

static void test_a_secret_that_is_none_is_refused(void **state)
{
    (void)state;
    char *path = mem_printf("%s/nothing", dir), *secret = NULL;
    struct err err = {0};
    char longer[2000];
    memset(longer, 'x', sizeof longer);
    expect_no_secret("", 0, 0600, "is empty");
    expect_no_secret("\nhunter2\n", 9, 0600, "is empty");
    expect_no_secret("hun\0ter2", 8, 0600, "NUL byte");
    expect_no_secret(longer, sizeof longer, 0600, "longer than");
    assert_int_equal(conf_file_read_secret(path, &secret, &err), ERR_CONFIG);
    assert_non_null(strstr(err.text, "there is no such password file"));
    assert_int_equal(conf_file_read_secret(dir, &secret, &err), ERR_CONFIG);
    conf_file_wipe_secret(NULL);
    free(path);
}

static void test_a_secret_that_others_can_read_is_refused(void **state)
{
    (void)state;
    static const mode_t open_modes[] = {0604, 0644, 0660, 0650, 0620, 0606};
    for (size_t i = 0; i < sizeof open_modes / sizeof open_modes[0]; i++)
        expect_no_secret("hunter2\n", 8, open_modes[i], "chmod 600");
}

int main(void)
{
    char template[] = "/tmp/dq-conf-XXXXXX";
    dir = mkdtemp(template);
    if (!dir) {
        perror(template);
        return 1;
    }
    const struct CMUnitTest fixed[] = {
        cmocka_unit_test(test_every_default_is_written_as_it_is_read),
        cmocka_unit_test(test_what_is_put_is_read_again),
        cmocka_unit_test(test_the_sample_file_agrees_with_the_table),
        cmocka_unit_test(test_the_sample_file_loads),
        cmocka_unit_test(test_the_named_file_wins_then_the_environment_then_the_home),
        cmocka_unit_test(test_an_empty_name_is_not_another_file),
        cmocka_unit_test(test_a_relative_name_is_resolved),
        cmocka_unit_test(test_a_caller_may_not_care_about_the_words),
        cmocka_unit_test(test_a_file_that_others_can_write_is_refused),
        cmocka_unit_test(test_what_is_no_regular_file_is_refused),
        cmocka_unit_test(test_a_file_of_somebody_else_is_refused),
        cmocka_unit_test(test_a_huge_file_is_refused),
        cmocka_unit_test(test_a_secret_is_the_first_line),
        cmocka_unit_test(test_a_secret_that_is_none_is_refused),
        cmocka_unit_test(test_a_secret_that_others_can_read_is_refused),
    };
    int failed = cases_run("conf.tbl", check_case, fixed, sizeof fixed / sizeof fixed[0]);
    char *remove = mem_printf("rm -rf %s", dir);
    if (system(remove) != 0)
        failed++;
    free(remove);
    return failed;
}
