/*
 * Settings in the environment: each key has a variable, which overrides the file; errors name it;
 * passwords are refused; variables of other kinds are left alone.
 */
#include "conf/conf.h"
#include "conf/conf_env.h"
#include "conf/conf_load.h"

#include "base/buf.h"
#include "base/mem.h"

#include <ctype.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char path[] = "/tmp/conf_env.XXXXXX/dq.ini";

static void write_ini(const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static int set_up(void **state)
{
    (void)state;
    conf_env_clear();
    write_ini("[mysql]\nhost = file1\n[dqd]\nslots = 7\n");
    return 0;
}

static struct conf *load(void)
{
    struct conf *c = NULL;
    struct err err = {0};

    if (conf_load(path, &c, &err) != 0)
        fail_msg("%s", err.text);
    return c;
}

static void refused(const char *variable, const char *value, const char *words)
{
    struct conf *c = NULL;
    struct err err = {0};

    setenv(variable, value, 1);
    if (conf_load(path, &c, &err) != ERR_CONFIG)
        fail_msg("%s=%s was accepted", variable, value);
    if (strcmp(err.text, words) != 0)
        fail_msg("%s=%s: \"%s\" instead of \"%s\"", variable, value, err.text, words);
    unsetenv(variable);
}

static char *variable_of(const struct conf_key *key)
{
    char *name = mem_printf("DQ_%s_%s", key->section, key->name);

    for (char *p = name; *p; p++)
        *p = (char)toupper((unsigned char)*p);
    return name;
}

/* A value that differs from the default, as one would write it. */
static const char *other_value(const struct conf_key *key)
{
    switch (key->type) {
    case CONF_INT:
        return "17";
    case CONF_DURATION:
    case CONF_AGE:
        return "11s";
    case CONF_RANGE:
        return "9s..11s";
    default:
        return key->choices ? key->choices[1] : key->type == CONF_PATH ? "/x/y" : "xyz";
    }
}

static void test_each_key_has_a_variable(void **state)
{
    (void)state;
    for (size_t i = 0; i < conf_key_count; i++) {
        const struct conf_key *key = &conf_keys[i];
        const char *value = other_value(key);
        char *variable = variable_of(key), *line = mem_printf("\n%s = %s\n", key->name, value);
        struct buf text = BUF_INIT;

        if (!strcmp(key->name, "lease")) /* must stay longer than the default heartbeat */
            setenv("DQ_DQD_HEARTBEAT", "1s", 1);
        if (!strcmp(key->name, "poll_interval") || !strcmp(key->name, "heartbeat"))
            setenv("DQ_DQD_LEASE", "1m", 1);
        if (!strcmp(key->name, "tls_cert"))
            setenv("DQ_MYSQL_TLS_KEY", "/x/y", 1);
        if (!strcmp(key->name, "tls_key"))
            setenv("DQ_MYSQL_TLS_CERT", "/x/y", 1);
        setenv(variable, value, 1);
        struct conf *c = load();
        conf_put_section(&text, c, key->section);
        if (!strstr(text.data, line))
            fail_msg("%s=%s has no effect: %s", variable, value, text.data);
        assert_non_null(strstr(c->variables, variable));
        conf_env_clear();
        conf_free(c);
        buf_done(&text);
        free(line);
        free(variable);
    }
}

static void test_it_overrides_the_file_alone(void **state)
{
    (void)state;
    setenv("DQ_MYSQL_HOST", " env1, env2 ", 1);
    struct conf *c = load();
    assert_string_equal(c->mysql.host, "env1, env2");
    assert_int_equal(c->dqd.slots, 7);
    assert_string_equal(c->variables, "DQ_MYSQL_HOST");
    conf_free(c);
    setenv("DQ_MYSQL_HOST", "", 1); /* a value like any other */
    c = load();
    assert_string_equal(c->mysql.host, "");
    conf_free(c);
    conf_env_clear();
    c = load();
    assert_string_equal(c->mysql.host, "file1");
    assert_null(c->variables);
    conf_free(c);
}

static void test_relative_paths_begin_at_the_file(void **state)
{
    (void)state;
    setenv("DQ_DQD_HANDLERS", "other.yaml", 1);
    struct conf *c = load();
    assert_memory_equal(c->dqd.handlers, path, strlen(path) - strlen("dq.ini"));
    assert_string_equal(c->dqd.handlers + strlen(path) - strlen("dq.ini"), "other.yaml");
    conf_free(c);
}

static void test_errors_name_the_variable(void **state)
{
    (void)state;
    refused("DQ_MYSQL_PORT", "tcp://10.0.0.1:3306",
            "DQ_MYSQL_PORT: port = tcp://10.0.0.1:3306 is not a whole number; give 1 to 65535");
    refused("DQ_DQD_SLOTS", "", "DQ_DQD_SLOTS: slots is empty; give 1 to 4096");
    refused("DQ_MYSQL_HOST", "db:x",
            "DQ_MYSQL_HOST: host: \"db:x\" is not a host; write db1, db1:3307 or [::1]:3307");
    refused(
        "DQ_DQD_HEARTBEAT", "40s",
        "DQ_DQD_HEARTBEAT: heartbeat (40s) must be shorter than lease (30s); lower heartbeat or raise lease");
    refused("DQ_MYSQL_USER", "a\nb",
            "DQ_MYSQL_USER: character 2 is an invisible control character (0x0a); remove it");
    refused("DQ_MYSQL_USER", "'a'",
            "DQ_MYSQL_USER: user: values are written without quotes; remove them");
}

static void test_unknown_ones_are_refused(void **state)
{
    (void)state;
    refused("DQ_MYSQL_HOTS", "x",
            "DQ_MYSQL_HOTS: [mysql] has no key \"hots\"; did you mean DQ_MYSQL_HOST?");
    refused("DQ_MYSQL_Host", "x",
            "DQ_MYSQL_Host: [mysql] has no key \"host\"; did you mean DQ_MYSQL_HOST?");
    refused("DQ_DQD_", "x", "DQ_DQD_: [dqd] has no key \"\"; dq.ini(5) lists the keys");
    refused(
        "DQ_RETENTION_SERVICE_PORT", "x",
        "DQ_RETENTION_SERVICE_PORT: [retention] has no key \"service_port\"; dq.ini(5) lists the keys");
}

static void test_a_password_is_refused_and_not_shown(void **state)
{
    (void)state;
    refused(
        "DQ_MYSQL_PASSWORD", "secret",
        "DQ_MYSQL_PASSWORD: a password is not taken from the environment; write it to a file, chmod 600 that, and"
        " name it: DQ_MYSQL_PASSWORD_FILE=PATH");
}

/* What dq, its handlers and its scripts use besides. */
static void test_other_variables_are_left_alone(void **state)
{
    static const char *const others[] = {"DQ_CONFIG",       "DQ_BIN",
                                         "DQ_SANDBOX",      "DQ_PAGER",
                                         "DQ_TOP",          "DQ_REPLY_FD",
                                         "DQ_ID",           "DQ_TAG",
                                         "DQ_KEY",          "DQ_ATTEMPT",
                                         "DQ_MAX_ATTEMPTS", "DQ_EXPECTED_TIME",
                                         "DQ_TOKEN",        "DQ_",
                                         "DQ_DQ",           "DQ_MYSQL",
                                         "DQ_DQDX_SLOTS",   "XDQ_MYSQL_HOTS",
                                         "DQ_HANDLERS",     "DQ_SCHEDULE",
                                         "DQ_SLOT",         "DQ_MISSED",
                                         "DQ_RUN_ID"};

    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        setenv(others[i], "x", 1);
    struct conf *c = load();
    assert_null(c->variables);
    conf_free(c);
    conf_env_clear();
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        assert_non_null(getenv(others[i]));
        unsetenv(others[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_each_key_has_a_variable, set_up),
        cmocka_unit_test_setup(test_it_overrides_the_file_alone, set_up),
        cmocka_unit_test_setup(test_relative_paths_begin_at_the_file, set_up),
        cmocka_unit_test_setup(test_errors_name_the_variable, set_up),
        cmocka_unit_test_setup(test_unknown_ones_are_refused, set_up),
        cmocka_unit_test_setup(test_a_password_is_refused_and_not_shown, set_up),
        cmocka_unit_test_setup(test_other_variables_are_left_alone, set_up),
    };
    char *slash = strrchr(path, '/');

    *slash = '\0';
    if (!mkdtemp(path))
        return 1;
    *slash = '/';
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    *slash = '\0';
    rmdir(path);
    return failed;
}
