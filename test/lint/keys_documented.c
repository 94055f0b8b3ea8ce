/*
 * keys_documented.c - every setting and every handler key is in its manual and in its sample file,
 * the samples show the true defaults and can be read, and they name nothing that does not exist.
 */
#include "conf/conf.h"
#include "conf/conf_load.h"
#include "conf/handlers.h"
#include "conf/handlers_keys.h"
#include "conf/handlers_load.h"

#include "base/buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* A file of the source tree, as text. */
static char *read_source(const char *path)
{
    const char *top = getenv("DQ_TOP");
    struct buf name = BUF_INIT, text = BUF_INIT;
    buf_printf(&name, "%s/%s", top ? top : ".", path);
    FILE *f = fopen(name.data, "r");
    if (!f)
        fail_msg("%s cannot be opened", name.data);
    char part[4096];
    size_t n;
    while ((n = fread(part, 1, sizeof part, f)) > 0)
        buf_add(&text, part, n);
    fclose(f);
    buf_done(&name);
    return buf_take(&text);
}

/* Whether the manual has an item of its own for a key: a line `.It Cm NAME ...`, whatever the
 * macro. */
static bool manual_has(const char *manual, const char *key)
{
    size_t len = strlen(key);
    for (const char *line = manual; line; line = strchr(line, '\n'), line += !!line) {
        if (strncmp(line, ".It ", 4) != 0)
            continue;
        const char *end = strchr(line, '\n');
        for (const char *p = strstr(line, key); p && (!end || p < end); p = strstr(p + 1, key))
            if (strchr(" \"", p[-1]) && strchr(" \n\"=:", p[len]))
                return true;
    }
    return false;
}

static void test_manual_of_settings_has_all(void **state)
{
    (void)state;
    char *manual = read_source("doc/dq.ini.5");
    int missing = 0;
    for (size_t i = 0; i < conf_key_count; i++) {
        if (manual_has(manual, conf_keys[i].name))
            continue;
        print_error("doc/dq.ini.5 has no item for [%s] %s\n", conf_keys[i].section,
                    conf_keys[i].name);
        missing++;
    }
    assert_int_equal(missing, 0);
    free(manual);
}

static void test_manual_of_handlers_has_all(void **state)
{
    (void)state;
    char *manual = read_source("doc/dq-handlers.5");
    int missing = 0;
    for (size_t i = 0; handlers_keys[i]; i++) {
        if (manual_has(manual, handlers_keys[i]))
            continue;
        print_error("doc/dq-handlers.5 has no item for %s\n", handlers_keys[i]);
        missing++;
    }
    assert_int_equal(missing, 0);
    free(manual);
}

/* Calls each with every "key = value" of an INI text, also where it is commented out. */
static int each_setting(char *text,
                        int (*each)(const char *section, const char *key, const char *value,
                                    void *arg),
                        void *arg)
{
    char section[64] = "";
    int sum = 0;
    for (char *save = NULL, *line = strtok_r(text, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        char key[64];
        int value_at = 0;
        sscanf(line, "[%63[a-z]]", section);
        line += strspn(line, ";#");
        line += *line == ' ';
        if (sscanf(line, "%63[a-z_] =%n", key, &value_at) == 1 && value_at > 0) {
            const char *value = line + value_at;
            sum += each(section, key, value + strspn(value, " "), arg);
        }
    }
    return sum;
}

static int check_setting(const char *section, const char *key, const char *value, void *arg)
{
    bool *seen = arg;
    for (size_t i = 0; i < conf_key_count; i++) {
        const struct conf_key *k = &conf_keys[i];
        if (strcmp(k->section, section) != 0 || strcmp(k->name, key) != 0)
            continue;
        seen[i] = true;
        if (strcmp(k->default_text, value) == 0)
            return 0;
        print_error("etc/dq.ini: [%s] %s = %s, but the default is %s\n", section, key, value,
                    k->default_text);
        return 1;
    }
    print_error("etc/dq.ini: there is no setting [%s] %s\n", section, key);
    return 1;
}

static void test_sample_of_settings_shows_each_with_its_default(void **state)
{
    (void)state;
    char *sample = read_source("etc/dq.ini");
    bool *seen = calloc(conf_key_count, sizeof *seen);
    assert_non_null(seen);
    int faults = each_setting(sample, check_setting, seen);
    for (size_t i = 0; i < conf_key_count; i++) {
        if (seen[i])
            continue;
        print_error("etc/dq.ini does not show [%s] %s\n", conf_keys[i].section, conf_keys[i].name);
        faults++;
    }
    assert_int_equal(faults, 0);
    free(seen);
    free(sample);
}

static void test_sample_of_handlers_shows_each_key(void **state)
{
    (void)state;
    char *sample = read_source("etc/handlers.yaml");
    int missing = 0;
    for (size_t i = 0; handlers_keys[i]; i++) {
        struct buf word = BUF_INIT;
        buf_printf(&word, " %s:", handlers_keys[i]);
        if (!strstr(sample, word.data)) {
            print_error("etc/handlers.yaml does not show %s\n", handlers_keys[i]);
            missing++;
        }
        buf_done(&word);
    }
    assert_int_equal(missing, 0);
    free(sample);
}

/* A copy that its reader trusts, whatever the modes of the checkout are. */
static char *copy_of(const char *path)
{
    char *text = read_source(path);
    char *name = strdup("/tmp/keys_documented.XXXXXX");
    assert_non_null(name);
    int fd = mkstemp(name);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    free(text);
    return name;
}

static void test_samples_can_be_read(void **state)
{
    (void)state;
    struct err err = {0};
    char *ini = copy_of("etc/dq.ini"), *yaml = copy_of("etc/handlers.yaml");
    struct conf *conf = NULL;
    struct handlers *handlers = NULL;
    if (conf_load(ini, &conf, &err) != 0)
        fail_msg("etc/dq.ini: %s", err.text);
    if (handlers_load(yaml, &handlers, &err) != 0)
        fail_msg("etc/handlers.yaml: %s", err.text);
    conf_free(conf);
    handlers_free(handlers);
    unlink(ini);
    unlink(yaml);
    free(ini);
    free(yaml);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_manual_of_settings_has_all),
        cmocka_unit_test(test_manual_of_handlers_has_all),
        cmocka_unit_test(test_sample_of_settings_shows_each_with_its_default),
        cmocka_unit_test(test_sample_of_handlers_shows_each_key),
        cmocka_unit_test(test_samples_can_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
