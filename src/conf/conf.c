/*
 * conf.c - the settings, as a table. Invariant: everything else that knows about settings goes by
 * it: the reader of dq.ini, dq help, the tests of the documents.
 */
#include "conf/conf.h"

#include "base/log.h"
#include "base/text.h"
#include "base/when.h"

#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#define CHECK_MS 200

static const char *const tls_names[] = {"disabled",  "preferred",       "required",
                                        "verify-ca", "verify-identity", NULL};
static const char *const history_names[] = {"failed", "all", NULL};
/* in the order of enum log_level */
static const char *const level_names[] = {"error", "warn", "notice", "info", "debug", NULL};
static const char *const output_names[] = {"table", "json", "ndjson", "tsv", "id", NULL};
static const char *const zone_names[] = {"local", "utc", NULL};
const char *const conf_color_names[] = {
    [CONF_COLOR_AUTO] = "auto", [CONF_COLOR_ALWAYS] = "always", [CONF_COLOR_NEVER] = "never", NULL};

/* clang-format off */
#define FIELD(s, f) offsetof(struct conf, s.f) /* NOLINT(bugprone-macro-parentheses): names cannot have any */
#define TEXT(s, n, d, least, help) {#s, #n, CONF_STRING, FIELD(s, n), d, least, 0, NULL, false, help}
#define WORD(s, n, d, names, help) {#s, #n, CONF_STRING, FIELD(s, n), d, 0, 0, names, false, help}
#define PATH(s, n, d, least, help) {#s, #n, CONF_PATH, FIELD(s, n), d, least, 0, NULL, false, help}
#define INT(s, n, d, lo, hi, live, help) {#s, #n, CONF_INT, FIELD(s, n), d, lo, hi, NULL, live, help}
#define SPAN(s, n, d, lo, hi, live, help) {#s, #n, CONF_DURATION, FIELD(s, n##_ms), d, lo, hi, NULL, live, help}
#define RANGE(s, n, d, lo, hi, live, help) {#s, #n, CONF_RANGE, FIELD(s, n##_ms), d, lo, hi, NULL, live, help}
#define AGE(s, n, d, help) {#s, #n, CONF_AGE, FIELD(s, n##_ms), d, 0, WHEN_MAX_DURATION_MS, NULL, true, help}
#define ENUM(s, n, d, first, names, live, help) {#s, #n, CONF_ENUM, FIELD(s, n), d, first, 0, names, live, help}

const struct conf_key conf_keys[] = {
    TEXT(mysql, host, "", 0, "servers in order of preference: db1, db2:3307, [::1]:3306; empty: use the local socket"),
    INT(mysql, port, "3306", 1, 65535, false, "port of hosts given without one"),
    PATH(mysql, socket, "", 0, "local socket; empty: where the client library looks"),
    TEXT(mysql, user, "", 0, "account on the server; empty: the name of the account that runs dq or dqd"),
    PATH(mysql, password_file, "", 0, "file whose first line is the password; others must not be able to read it"),
    PATH(mysql, defaults_file, "", 0, "MySQL option file, groups [client] and [dq]; values here win over it"),
    TEXT(mysql, database, "dq", 1, "database that holds the tables"),
    ENUM(mysql, tls, "preferred", 0, tls_names, false, "disabled, preferred, required, verify-ca or verify-identity"),
    PATH(mysql, tls_ca, "", 0, "PEM file of the authority that signed the server's certificate"),
    PATH(mysql, tls_cert, "", 0, "PEM file of the client's certificate"),
    PATH(mysql, tls_key, "", 0, "PEM file of the client's key"),
    SPAN(mysql, connect_timeout, "10s", WHEN_SECOND, WHEN_HOUR, false, "longest wait for a host to accept and to greet"),
    SPAN(mysql, read_timeout, "30s", WHEN_SECOND, WHEN_HOUR, false, "longest wait for the server's next bytes"),
    SPAN(mysql, write_timeout, "30s", WHEN_SECOND, WHEN_HOUR, false, "longest wait for the server to take bytes"),
    TEXT(mysql, init_command, "", 0, "one SQL statement run on every new connection"),

    PATH(dqd, handlers, "handlers.yaml", 1, "handlers file: which command runs the tasks of which tag"),
    INT(dqd, slots, "32", 1, CONF_SLOTS_MAX, false, "handler processes at a time"),
    RANGE(dqd, poll_interval, "20ms..1s", 10, WHEN_HOUR, true,
          "how often to poll for tasks that no wake-up announced: a range, or one value"),
    SPAN(dqd, lease, "30s", 2 * WHEN_SECOND, WHEN_DAY, false, "a dqd that is silent for this long loses its tasks"),
    SPAN(dqd, heartbeat, "5s", 100, WHEN_HOUR, true, "how often dqd reports that it is alive"),
    SPAN(dqd, steal_after, "2s", 0, WHEN_HOUR, true,
         "how long tasks in the share of another dqd must be overdue before they are taken"),
    SPAN(dqd, drain_timeout, "30s", 0, WHEN_DAY, true, "after SIGTERM running handlers get this long"),
    INT(dqd, claim_batch, "500", 1, 5000, true, "most tasks claimed at once"),
    TEXT(dqd, user, "", 0, "when started as root: account of dqd, and of handlers without user; empty: root"),
    PATH(dqd, lock_file, "", 0, "keeps runs by cron from overlapping; empty: a file chosen by user and database"),
    PATH(dqd, wake_dir, "/run/dq", 0, "directory through which dq wakes the dqd of this host; empty: no wake-ups"),
    PATH(dqd, metrics_file, "", 0, "file of metrics for node_exporter, replaced with each heartbeat; empty: none"),
    ENUM(dqd, log_level, "info", LOG_ERROR, level_names, true, "error, warn, notice, info or debug"),
    ENUM(dqd, history, "failed", 0, history_names, true, "attempts to keep: failed or all"),

    AGE(retention, done, "7d", "done tasks are deleted after this; never: kept"),
    AGE(retention, failed, "30d", "failed tasks are deleted after this; never: kept"),
    AGE(retention, cancelled, "7d", "cancelled tasks are deleted after this; never: kept"),
    AGE(retention, counters, "30d", "counts by minute and tag are deleted after this; never: kept"),
    AGE(retention, events, "90d", "records of acts, and of starts and ends of dqds, are deleted after this; never: kept"),
    SPAN(retention, interval, "1m", 100, WHEN_DAY, true, "pause between sweeps"),

    TEXT(dq, name, "", 0, "name of this installation, such as prod, for questions before large changes"),
    WORD(dq, output, "table", output_names, "format of listings: table, json, ndjson, tsv or id"),
    ENUM(dq, color, "auto", 0, conf_color_names, false, "colours in tables: auto, always or never"),
    WORD(dq, time_zone, "local", zone_names, "zone of times in tables: local or utc"),
    SPAN(dq, retry_for, "10s", 0, WHEN_HOUR, false, "without a terminal, how long to try again while no server is available"),
};
/* clang-format on */
#define KEY_COUNT (sizeof conf_keys / sizeof conf_keys[0])
const size_t conf_key_count = KEY_COUNT;
const char *const conf_sections[] = {"mysql", "dqd", "retention", "dq", NULL};

const struct conf_key *conf_find_key(const char *section, const char *name)
{
    for (size_t i = 0; i < KEY_COUNT; i++)
        if (strcmp(conf_keys[i].section, section) == 0 && strcmp(conf_keys[i].name, name) == 0)
            return &conf_keys[i];
    return NULL;
}

const char *conf_nearest_key(const char *section, const char *name)
{
    const char *names[KEY_COUNT];
    size_t count = 0;

    for (size_t i = 0; i < KEY_COUNT; i++)
        if (strcmp(conf_keys[i].section, section) == 0)
            names[count++] = conf_keys[i].name;
    return text_nearest(name, names, count);
}

const char *conf_other_section(const char *section, const char *name)
{
    for (size_t i = KEY_COUNT; i-- > 0;)
        if (strcmp(conf_keys[i].section, section) != 0 && strcmp(conf_keys[i].name, name) == 0)
            return conf_keys[i].section;
    return NULL;
}

void *conf_field(struct conf *c, const struct conf_key *key)
{
    return (char *)c + key->offset;
}

void conf_free(struct conf *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < conf_key_count; i++)
        if (conf_keys[i].type == CONF_STRING || conf_keys[i].type == CONF_PATH)
            free(*(char **)conf_field(c, &conf_keys[i]));
    free(c->path);
    free(c->variables);
    free(c);
}

const char *conf_or_null(const char *text)
{
    return text && *text ? text : NULL;
}

int64_t conf_check_ms(const struct conf *c)
{
    return MIN(MAX(c->dqd.poll_least_ms, CHECK_MS), c->dqd.poll_interval_ms);
}

static size_t size_of(const struct conf_key *key)
{
    switch (key->type) {
    case CONF_DURATION:
    case CONF_AGE:
        return sizeof(int64_t);
    case CONF_RANGE:
        return 2 * sizeof(int64_t);
    default:
        return sizeof(int);
    }
}

static bool same(const struct conf *a, const struct conf *b, const struct conf_key *key)
{
    const void *x = (const char *)a + key->offset, *y = (const char *)b + key->offset;

    if (key->type == CONF_STRING || key->type == CONF_PATH)
        return strcmp(*(char *const *)x, *(char *const *)y) == 0;
    return memcmp(x, y, size_of(key)) == 0;
}

const struct conf_key *conf_take_reloadable(struct conf *to, const struct conf *from)
{
    const struct conf_key *left = NULL;

    for (size_t i = 0; i < conf_key_count; i++) {
        const struct conf_key *key = &conf_keys[i];
        if (same(to, from, key))
            continue;
        if (!key->reloadable)
            left = left ? left : key;
        else
            memcpy(conf_field(to, key), (const char *)from + key->offset, size_of(key));
    }
    return left;
}

static void put_value(struct buf *b, const struct conf_key *key, const void *field)
{
    char text[WHEN_TEXT_SIZE];

    switch (key->type) {
    case CONF_STRING:
    case CONF_PATH:
        buf_str(b, *(char *const *)field);
        break;
    case CONF_INT:
        buf_printf(b, "%d", *(const int *)field);
        break;
    case CONF_RANGE:
        if (((const int64_t *)field)[1] < ((const int64_t *)field)[0])
            buf_printf(b, "%s..", when_format_duration(text, ((const int64_t *)field)[1]));
        /* fall through */
    case CONF_DURATION:
    case CONF_AGE:
        buf_str(b, key->type == CONF_AGE && !*(const int64_t *)field
                       ? "never"
                       : when_format_duration(text, *(const int64_t *)field));
        break;
    case CONF_ENUM:
        buf_str(b, key->choices[*(const int *)field - key->min]);
        break;
    }
}

void conf_put_section(struct buf *b, const struct conf *c, const char *section)
{
    buf_printf(b, "[%s]\n", section);
    for (const struct conf_key *key = conf_keys; key < conf_keys + conf_key_count; key++) {
        if (strcmp(key->section, section) != 0)
            continue;
        buf_printf(b, "%s = ", key->name);
        put_value(b, key, (const char *)c + key->offset);
        buf_chr(b, '\n');
    }
}
