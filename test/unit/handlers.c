/*
 * The handlers file: what is read, what is refused and in which words (test/data/handlers.tbl), the
 * samples, and large input.
 */
#include "conf/handlers.h"
#include "conf/handlers_keys.h"
#include "conf/handlers_load.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/when.h"
#include "cases.h"

#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
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

static char dir[] = "/tmp/dq-handlers-XXXXXX";
static char *path; /* of the file under test, in dir */

static void write_file(const void *bytes, size_t len)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, len), len);
    close(fd);
}

/* ---- handlers as text ---- */

static void put_path(struct buf *b, const char *text)
{
    bool below = strncmp(text, dir, strlen(dir)) == 0;
    buf_printf(b, "%s%s", below ? "@" : "", below ? text + strlen(dir) : text);
}

static void put_recycle(struct buf *b, const struct handler_recycle *r)
{
    char age[WHEN_TEXT_SIZE], idle[WHEN_TEXT_SIZE];
    buf_printf(b, "tasks %d age %s memory %lld idle %s", r->tasks,
               when_format_duration(age, r->age_ms), (long long)r->memory,
               when_format_duration(idle, r->idle_ms));
}

static void put_run(struct buf *b, const struct handler *h)
{
    assert_true((!h->run) != (!h->argv));
    if (h->run) {
        buf_str(b, h->run);
        while (b->len > 0 &&
               b->data[b->len - 1] == '\n') /* of a block; the table has no room for it */
            b->data[--b->len] = '\0';
        return;
    }
    buf_chr(b, '[');
    for (size_t i = 0; h->argv[i]; i++) {
        buf_str(b, i > 0 ? "|" : "");
        put_path(b, h->argv[i]);
    }
    buf_chr(b, ']');
}

static void put_retry(struct buf *b, const struct handler *h)
{
    char text[WHEN_TEXT_SIZE];
    for (size_t i = 0; i < h->retry.steps; i++)
        buf_printf(b, "%s%s", i > 0 ? " " : "", when_format_duration(text, h->retry.step_ms[i]));
}

static void put_env(struct buf *b, const struct handler *h)
{
    for (size_t i = 0; h->env[i]; i++)
        buf_printf(b, "%s%s", i > 0 ? " " : "", h->env[i]);
}

static void put_permanent(struct buf *b, const struct handler *h)
{
    for (int i = 0; i < 256; i++)
        if (h->permanent_exit[i])
            buf_printf(b, "%s%d", b->len > 0 ? " " : "", i);
}

/* The value of a key in one canonical form. */
static char *value_text(const struct handler *h, const char *key)
{
    struct buf b = BUF_INIT;
    char text[WHEN_TEXT_SIZE];
    if (strcmp(key, "run") == 0)
        put_run(&b, h);
    else if (strcmp(key, "batch") == 0)
        buf_printf(&b, "%d", h->batch);
    else if (strcmp(key, "timeout") == 0)
        buf_str(&b, when_format_duration(text, h->timeout_ms));
    else if (strcmp(key, "keep") == 0)
        buf_printf(&b, "%d", h->keep);
    else if (strcmp(key, "start_timeout") == 0)
        buf_str(&b, when_format_duration(text, h->start_timeout_ms));
    else if (strcmp(key, "recycle") == 0)
        put_recycle(&b, &h->recycle);
    else if (strcmp(key, "restart_on") == 0)
        put_path(&b, h->restart_on[0] ? h->restart_on[0] : "");
    else if (strcmp(key, "kill_grace") == 0)
        buf_str(&b, when_format_duration(text, h->kill_grace_ms));
    else if (strcmp(key, "retry") == 0)
        put_retry(&b, h);
    else if (strcmp(key, "jitter") == 0)
        buf_printf(&b, h->retry.jitter_percent == RETRY_JITTER_AUTO ? "auto" : "%u%%",
                   h->retry.jitter_percent);
    else if (strcmp(key, "expires") == 0)
        buf_str(&b, when_format_duration(text, h->expires_ms));
    else if (strcmp(key, "max_running") == 0)
        buf_printf(&b, "%d", h->max_running);
    else if (strcmp(key, "weight") == 0)
        buf_printf(&b, "%d", h->weight);
    else if (strcmp(key, "global_max_running") == 0)
        buf_printf(&b, "%d", h->global_max_running);
    else if (strcmp(key, "breaker") == 0)
        buf_printf(&b, "%d %" PRId64 " %" PRId64, h->breaker.failures, h->breaker.within_ms,
                   h->breaker.rest_ms);
    else if (strcmp(key, "env") == 0)
        put_env(&b, h);
    else if (strcmp(key, "cwd") == 0)
        put_path(&b, h->cwd);
    else if (strcmp(key, "user") == 0)
        buf_str(&b, h->user ? h->user : "");
    else if (strcmp(key, "nice") == 0)
        buf_printf(&b, "%d", h->nice);
    else if (strcmp(key, "umask") == 0)
        buf_printf(&b, "%03o", (unsigned)h->umask);
    else if (strcmp(key, "output_limit") == 0)
        buf_printf(&b, "%zu", h->output_limit);
    else if (strcmp(key, "permanent_exit_codes") == 0)
        put_permanent(&b, h);
    else if (strcmp(key, "shell") == 0)
        buf_str(&b, h->shell ? h->shell : "/bin/sh");
    else if (strcmp(key, "on_lease_expiry") == 0)
        buf_str(&b, h->on_lease_expiry == HANDLER_EXPIRY_FAIL ? "fail" : "retry");
    else if (strcmp(key, "on_failed") == 0)
        buf_str(&b, h->on_failed ? h->on_failed : "");
    else if (strcmp(key, "limit") == 0)
        buf_str(&b, h->limit ? h->limit : "");
    else
        fail_msg("no key %s", key);
    return buf_take(&b);
}

static const char *matching(const struct handlers *h, const char *tag)
{
    int i = handlers_match(h, tag);
    assert_true(i >= -1 && i < (int)h->count);
    return i < 0 ? "none" : h->items[i].name;
}

static char *lookup(const struct handlers *h, char *subject, const char *key)
{
    if (strcmp(subject, "match") == 0)
        return mem_strdup(matching(h, key));
    for (size_t i = 0; i < h->count; i++)
        if (strcmp(h->items[i].name, subject) == 0)
            return value_text(&h->items[i], key);
    fail_msg("no handler %s", subject);
    return NULL;
}

static void check_values(const struct handlers *h, const struct test_case *t)
{
    for (size_t i = 0; i < t->count; i++) {
        char *subject = mem_strdup(t->expected[i]);
        char *key = strchr(subject, ' '), *equals = strstr(subject, " =");
        assert_non_null(equals);
        assert_true(key < equals);
        *key++ = *equals = '\0';
        const char *want = equals[2] == ' ' ? equals + 3 : "";
        char *got = lookup(h, subject, key);
        if (strcmp(got, want) != 0)
            fail_msg("%s %s = %s, expected %s", subject, key, got, want);
        free(got);
        free(subject);
    }
}

static void check_case(const struct test_case *t)
{
    write_file(t->input.data ? t->input.data : "", t->input.len);
    struct handlers *h = NULL;
    struct err err = {0};
    assert_true(t->count > 0);
    int rc = handlers_load(path, &h, &err);
    if (t->expected[0][0] >= '0' && t->expected[0][0] <= '9') {
        assert_int_equal(rc, ERR_CONFIG);
        assert_int_equal(err.code, ERR_CONFIG);
        assert_null(h);
        cases_check_message(err.text, path, t->expected[0]);
    } else {
        if (rc != 0)
            fail_msg("%s", err.text);
        assert_string_equal(h->path, path);
        check_values(h, t);
    }
    handlers_free(h);
}

/* ---- the rest ---- */

static struct handlers *load_text(const char *text, size_t len)
{
    write_file(text, len);
    struct handlers *h = NULL;
    struct err err;
    if (handlers_load(path, &h, &err) != 0)
        fail_msg("%s", err.text);
    return h;
}

static struct buf slurp(const char *name)
{
    struct buf b = BUF_INIT;
    FILE *f = fopen(name, "r");
    assert_non_null(f);
    for (int ch; (ch = getc(f)) != EOF;)
        buf_chr(&b, (char)ch);
    fclose(f);
    return b;
}

static void test_the_digest_tells_tables_apart(void **state)
{
    (void)state;
    static const char one[] = "handlers: {a: {run: x}}", other[] = "handlers: {a: {run: y}}";
    struct handlers *a = load_text(one, strlen(one)), *b = load_text(other, strlen(other)),
                    *c = load_text(one, strlen(one));
    assert_true(a->digest == c->digest);
    assert_true(a->digest != b->digest);
    handlers_free(a);
    handlers_free(b);
    handlers_free(c);
}

static void test_lines_are_remembered(void **state)
{
    (void)state;
    static const char text[] = "handlers:\n  a: {run: x}\n\n  b: {run: x}\n";
    struct handlers *h = load_text(text, strlen(text));
    assert_int_equal(h->items[0].line, 2);
    assert_int_equal(h->items[1].line, 4);
    handlers_free(h);
}

static void expect_refused(const char *words)
{
    struct handlers *h = NULL;
    struct err err = {0};
    assert_int_equal(handlers_load(path, &h, &err), ERR_CONFIG);
    assert_null(h);
    if (strncmp(err.text, path, strlen(path)) != 0 || !strstr(err.text, words))
        fail_msg("\"%s\" lacks \"%s\"", err.text, words);
}

static void test_a_file_that_others_can_write_is_refused(void **state)
{
    (void)state;
    write_file("handlers:\n", 10);
    assert_int_equal(chmod(path, 0664), 0);
    expect_refused("others can write to the handlers file (mode 0664); run: chmod go-w");
    assert_int_equal(chmod(path, 0600), 0);
    unlink(path);
    expect_refused("there is no such handlers file");
}

static void test_a_caller_may_not_care_about_the_words(void **state)
{
    (void)state;
    static const char *const wrong[] = {"handlers: {a: {run: x, nice: y}}", "handlers: {a: {run: x",
                                        "handlers: {a: {run: x, retry: [10]}}"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct handlers *h = NULL;
        write_file(wrong[i], strlen(wrong[i]));
        assert_int_equal(handlers_load(path, &h, NULL), ERR_CONFIG);
        assert_null(h);
    }
}

static void test_a_large_table_loads(void **state)
{
    (void)state;
    const bool brief = getenv("DQ_TEST_SHORT"); /* memcheck is slow */
    const int entries = brief ? 400 : 4096;
    struct buf text = BUF_INIT;
    buf_str(&text, "handlers:\n");
    for (int i = 0; i < entries; i++)
        buf_printf(&text, "  tag.number-%d: {run: \"echo %d\", env: {A: \"%d\"}}\n", i, i, i);
    struct handlers *h = load_text(text.data, text.len);
    assert_int_equal(h->count, entries);
    assert_int_equal(handlers_match(h, "tag.number-399"), 399);
    handlers_free(h);
    buf_str(&text, "  one.more: {run: x}\n");
    write_file(text.data, text.len);
    if (!brief)
        expect_refused("4098:3: more than 4096 entries");
    buf_done(&text);
}

static void test_a_file_with_a_byte_order_mark_is_read_to_its_last_byte(void **state)
{
    static const char text[] = "\xef\xbb\xbfhandlers: {a: {run: x}}";
    struct handlers *h = NULL;
    struct err err;
    (void)state;
    write_file(text, strlen(text));
    assert_int_equal(handlers_load(path, &h, &err), 0);
    handlers_free(h);
}

static void test_a_huge_file_is_refused(void **state)
{
    (void)state;
    size_t len = 1024 * 1024 + 1;
    char *bytes = mem_alloc(len);
    memset(bytes, '#', len);
    write_file(bytes, len);
    expect_refused("longer than 1024 KiB");
    free(bytes);
}

/* The samples in etc/ load as they are; here a copy of each, so that the owner of the source tree
 * does not matter. */
/* The examples of etc/handlers.yaml are right, too. */
static void test_the_sample_loads_when_everything_is_taken_in(void **state)
{
    (void)state;
    char *sample = mem_printf("%s/etc/handlers.yaml", getenv("DQ_TOP"));
    struct buf text = slurp(sample);
    for (char *line = strstr(text.data, "\n#  "); line; line = strstr(line, "\n#  "))
        memmove(line + 1, line + 2, strlen(line + 1));
    struct handlers *h = load_text(text.data, strlen(text.data));
    assert_true(h->count >= 3);
    assert_string_equal(matching(h, "mail.welcome"), "mail.*");
    handlers_free(h);
    buf_done(&text);
    free(sample);
}

static void test_the_samples_load(void **state)
{
    (void)state;
    glob_t found = {0};
    char *sample = mem_printf("%s/etc/handlers.yaml", getenv("DQ_TOP")),
         *pattern = mem_printf("%s/etc/handlers.d/*.yaml", getenv("DQ_TOP"));
    assert_int_equal(glob(sample, 0, NULL, &found), 0);
    assert_int_equal(glob(pattern, GLOB_APPEND, NULL, &found), 0);
    assert_true(found.gl_pathc >= 2);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        struct buf text = slurp(found.gl_pathv[i]);
        struct handlers *h = load_text(text.data, text.len);
        assert_true(i == 0 || h->count > 0);
        handlers_free(h);
        buf_done(&text);
    }
    globfree(&found);
    free(sample);
    free(pattern);
}

/* etc/handlers.yaml shows every key but run once under defaults, as "#  KEY: VALUE", and these
 * values are the defaults. */
static void test_the_sample_shows_every_key_with_its_default(void **state)
{
    (void)state;
    char *sample = mem_printf("%s/etc/handlers.yaml", getenv("DQ_TOP"));
    struct buf text = slurp(sample), live = BUF_INIT;
    size_t shown = 0;
    for (char *line = strtok(text.data, "\n"); line && strcmp(line, "handlers:") != 0;
         line = strtok(NULL, "\n")) {
        bool key = strncmp(line, "#  ", 3) == 0 && strchr(line, ':');
        buf_printf(&live, "%s%s\n", key ? "  " : "", key ? line + 3 : line);
        shown += key;
    }
    buf_str(&live, "handlers: {a: {run: x}}\n");
    struct handlers *given = load_text(live.data, live.len),
                    *bare = load_text("handlers: {a: {run: x}}\n", 24);
    size_t keys = 0;
    for (; handlers_keys[keys]; keys++) {
        char *line = mem_printf("\n  %s: ", handlers_keys[keys]);
        char *a = value_text(&given->items[0], handlers_keys[keys]),
             *b = value_text(&bare->items[0], handlers_keys[keys]);
        if (strcmp(handlers_keys[keys], "run") != 0 && strcmp(handlers_keys[keys], "user") != 0 &&
            !strstr(live.data, line))
            fail_msg("%s is not in the sample", handlers_keys[keys]);
        assert_string_equal(a, b);
        free(line);
        free(a);
        free(b);
    }
    /* run belongs to handlers; user has no value that is a default */
    assert_int_equal(shown, keys - 2);
    handlers_free(given);
    handlers_free(bare);
    buf_done(&text);
    buf_done(&live);
    free(sample);
}

/* ---- the digest ---- */

static uint64_t digest_of(const char *settings)
{
    struct handlers *h = NULL;
    struct err err = {0};
    bool runs = strncmp(settings, "run:", 4) == 0;
    char *text = mem_printf("handlers:\n  t:\n    %s%s\n", runs ? "" : "run: a\n    ", settings);
    uint64_t digest;

    write_file(text, strlen(text));
    if (handlers_load(path, &h, &err) != 0)
        fail_msg("%s: %s", settings, err.text);
    digest = handlers_item_digest(&h->items[0]);
    handlers_free(h);
    free(text);
    return digest;
}

static void test_the_digest_of_an_entry_is_of_every_setting(void **state)
{
    static const char *const settings[][2] = {
        {"run", "run: b"},
        {"batch", "batch: 2"},
        {"keep", "keep: 2"},
        {"start_timeout", "start_timeout: 29s"},
        {"recycle", "recycle: {memory: 1m}"},
        {"restart_on", "restart_on: [x]"},
        {"timeout", "timeout: 59s"},
        {"kill_grace", "kill_grace: 4s"},
        {"retry", "retry: [5s]"},
        {"jitter", "jitter: 10%"},
        {"expires", "expires: 3d"},
        {"max_running", "max_running: 7"},
        {"weight", "weight: 9"},
        {"global_max_running", "global_max_running: 9"},
        {"env", "env: {A: b}"},
        {"cwd", "cwd: /tmp"},
        {"user", "user: root"},
        {"nice", "nice: 1"},
        {"umask", "umask: 027"},
        {"output_limit", "output_limit: 1m"},
        {"permanent_exit_codes", "permanent_exit_codes: [64]"},
        {"shell", "shell: /bin/bash"},
        {"on_lease_expiry", "on_lease_expiry: fail"},
        {"on_failed", "on_failed: dead"},
        {"breaker", "breaker: {failures: 9}"},
        {"limit", "limit: stripe"},
    };
    const uint64_t plain = digest_of("batch: 1");

    (void)state;
    for (size_t i = 0; handlers_keys[i]; i++) {
        size_t at = 0;

        while (strcmp(settings[at][0], handlers_keys[i]) != 0)
            if (++at == sizeof settings / sizeof settings[0])
                fail_msg("the digest is not tested for %s", handlers_keys[i]);
        if (digest_of(settings[at][1]) == plain)
            fail_msg("the digest does not depend on %s", settings[at][0]);
    }
    assert_int_equal(digest_of("# elsewhere\n\n    batch: 1"), plain);
    assert_true(digest_of("env: {A: b}") == digest_of("env: {A: c}"));
    assert_true(digest_of("env: {A: b}") != digest_of("env: {B: b}"));
    assert_true(digest_of("run: [a, b]") != digest_of("run: [a, c]"));
}

int main(void)
{
    if (!mkdtemp(dir)) {
        perror(dir);
        return 1;
    }
    path = mem_printf("%s/handlers.yaml", dir);
    const struct CMUnitTest fixed[] = {
        cmocka_unit_test(test_the_digest_tells_tables_apart),
        cmocka_unit_test(test_the_digest_of_an_entry_is_of_every_setting),
        cmocka_unit_test(test_lines_are_remembered),
        cmocka_unit_test(test_a_file_that_others_can_write_is_refused),
        cmocka_unit_test(test_a_caller_may_not_care_about_the_words),
        cmocka_unit_test(test_a_large_table_loads),
        cmocka_unit_test(test_a_file_with_a_byte_order_mark_is_read_to_its_last_byte),
        cmocka_unit_test(test_a_huge_file_is_refused),
        cmocka_unit_test(test_the_samples_load),
        cmocka_unit_test(test_the_sample_loads_when_everything_is_taken_in),
        cmocka_unit_test(test_the_sample_shows_every_key_with_its_default),
    };
    int failed = cases_run("handlers.tbl", check_case, fixed, sizeof fixed / sizeof fixed[0]);
    unlink(path);
    rmdir(dir);
    free(path);
    return failed;
}
