/*
 * conf.c - the settings: one table, and an INI reader (inih) that fills a struct conf by it.
 *
 * Invariant: a struct conf that conf_load hands out has every field set and in range. inih is fed
 * line by line through read_line, which refuses whatever inih would silently cut or join: long
 * lines, text behind a section or a " ;", continuation lines.
 */
#include "conf/conf.h"

#include "base/buf.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/when.h"
#include "base/when_parse.h"
#include "conf/conf_file.h"

#include <ini.h>

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MAX ((size_t)64 * 1024)

static const char *const tls_names[] = {"disabled",  "preferred",       "required",
                                        "verify-ca", "verify-identity", NULL};
static const char *const history_names[] = {"failed", "all", NULL};
static const char *const level_names[] = {"error", "warn", "notice", "info", "debug", NULL};
static const char *const output_names[] = {"table", "json", "ndjson", "tsv", "id", NULL};
static const char *const zone_names[] = {"local", "utc", NULL};
static const char *const section_names[] = {"mysql", "dqd", "retention", "dq"};

#define SECOND INT64_C(1000)
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)

/* clang-format off */
#define FIELD(s, f) offsetof(struct conf, s.f) /* NOLINT(bugprone-macro-parentheses): names cannot have any */
#define TEXT(s, n, d, least, help) {#s, #n, CONF_STRING, FIELD(s, n), d, least, 0, NULL, false, help}
#define WORD(s, n, d, names, help) {#s, #n, CONF_STRING, FIELD(s, n), d, 0, 0, names, false, help}
#define PATH(s, n, d, least, help) {#s, #n, CONF_PATH, FIELD(s, n), d, least, 0, NULL, false, help}
#define INT(s, n, d, lo, hi, live, help) {#s, #n, CONF_INT, FIELD(s, n), d, lo, hi, NULL, live, help}
#define SPAN(s, n, d, lo, hi, live, help) {#s, #n, CONF_DURATION, FIELD(s, n##_ms), d, lo, hi, NULL, live, help}
#define AGE(s, n, d, help) {#s, #n, CONF_AGE, FIELD(s, n##_ms), d, 0, WHEN_MAX_DURATION_MS, NULL, true, help}
#define ENUM(s, n, d, names, live, help) {#s, #n, CONF_ENUM, FIELD(s, n), d, 0, 0, names, live, help}

const struct conf_key conf_keys[] = {
    TEXT(mysql, host, "", 0, "servers in order of preference: db1, db2:3307, [::1]:3306; empty: use the local socket"),
    INT(mysql, port, "3306", 1, 65535, false, "port of hosts given without one"),
    PATH(mysql, socket, "", 0, "local socket; empty: where the client library looks"),
    TEXT(mysql, user, "", 0, "account on the server; empty: the name of the account that runs dq or dqd"),
    PATH(mysql, password_file, "", 0, "file whose first line is the password; others must not be able to read it"),
    PATH(mysql, defaults_file, "", 0, "MySQL option file, groups [client] and [dq]; values here win over it"),
    TEXT(mysql, database, "dq", 1, "database that holds the tables"),
    ENUM(mysql, tls, "preferred", tls_names, false, "disabled, preferred, required, verify-ca or verify-identity"),
    PATH(mysql, tls_ca, "", 0, "PEM file of the authority that signed the server's certificate"),
    PATH(mysql, tls_cert, "", 0, "PEM file of the client's certificate"),
    PATH(mysql, tls_key, "", 0, "PEM file of the client's key"),
    SPAN(mysql, connect_timeout, "10s", SECOND, HOUR, false, "longest wait for one host to answer"),
    SPAN(mysql, read_timeout, "30s", SECOND, HOUR, false, "longest wait for the server's next bytes"),
    SPAN(mysql, write_timeout, "30s", SECOND, HOUR, false, "longest wait for the server to take bytes"),
    TEXT(mysql, init_command, "", 0, "one SQL statement run on every new connection"),

    PATH(dqd, handlers, "handlers.yaml", 1, "handlers file: which command runs the tasks of which tag"),
    INT(dqd, slots, "32", 1, CONF_SLOTS_MAX, false, "handler processes at a time"),
    SPAN(dqd, poll_interval, "200ms", 10, HOUR, true, "how often to look for work that no wake-up announced"),
    SPAN(dqd, lease, "30s", 2 * SECOND, DAY, false, "a dqd that is silent for this long loses its tasks"),
    SPAN(dqd, heartbeat, "5s", 100, HOUR, true, "how often dqd reports that it is alive"),
    SPAN(dqd, steal_after, "2s", 0, HOUR, true, "how long tasks preferred by another dqd must be overdue before they are taken"),
    SPAN(dqd, drain_timeout, "30s", 0, DAY, true, "after SIGTERM running handlers get this long"),
    INT(dqd, claim_batch, "500", 1, 5000, true, "most tasks taken at once"),
    TEXT(dqd, user, "", 0, "when started as root: account of dqd, and of handlers without user; empty: root"),
    PATH(dqd, lock_file, "", 0, "keeps runs by cron from overlapping; empty: a file chosen by user and database"),
    PATH(dqd, wake_dir, "/run/dq", 0, "directory through which dq wakes the dqd of this host; empty: no wake-ups"),
    PATH(dqd, metrics_file, "", 0, "file of metrics for node_exporter, replaced with each heartbeat; empty: none"),
    ENUM(dqd, log_level, "info", level_names, true, "error, warn, notice, info or debug"),
    ENUM(dqd, history, "failed", history_names, true, "attempts to keep: failed or all"),

    AGE(retention, done, "7d", "done tasks are deleted after this; never: kept"),
    AGE(retention, failed, "30d", "failed tasks are deleted after this; never: kept"),
    AGE(retention, cancelled, "7d", "cancelled tasks are deleted after this; never: kept"),
    AGE(retention, counters, "30d", "what dqd counts by minute and tag is deleted after this; never: kept"),
    AGE(retention, events, "90d", "what operators did is forgotten after this; never: kept"),
    SPAN(retention, interval, "1m", 100, DAY, true, "pause between sweeps"),

    TEXT(dq, name, "", 0, "name of this installation, such as prod, for questions before large changes"),
    WORD(dq, output, "table", output_names, "format of listings: table, json, ndjson, tsv or id"),
    WORD(dq, time_zone, "local", zone_names, "zone of times in tables: local or utc"),
};
/* clang-format on */
#define KEY_COUNT (sizeof conf_keys / sizeof conf_keys[0])
const size_t conf_key_count = KEY_COUNT;

struct ini {
    const char *file;         /* as it was named: goes into messages */
    char *dir;                /* of the file: where relative paths begin */
    const char *pos, *end;    /* the text that is still to be read */
    unsigned line;            /* of the line that inih works on */
    unsigned seen[KEY_COUNT]; /* the line of each key; 0: not given */
    struct conf *conf;
    int rc; /* of the first fault, which ends the reading */
    unsigned fault_line;
    struct err *err;
};

/* Records the first fault. */
__attribute__((format(printf, 3, 4))) static int fail(struct ini *s, unsigned line, const char *fmt,
                                                      ...)
{
    va_list ap;
    va_start(ap, fmt);
    s->rc = err_vset(s->err, ERR_CONFIG, fmt, ap);
    va_end(ap);
    s->fault_line = line;
    (void)err_prefix(s->err, "%s:%u", s->file, line);
    return s->rc;
}

static void *field(struct conf *c, const struct conf_key *key)
{
    return (char *)c + key->offset;
}

static int choice_index(const struct conf_key *key, const char *text)
{
    for (int i = 0; key->choices[i]; i++)
        if (strcmp(key->choices[i], text) == 0)
            return i;
    return -1;
}

static int set_choice(struct ini *s, const struct conf_key *key, const char *text, int *ret_index)
{
    int i = choice_index(key, text);
    if (i < 0) {
        struct buf names = BUF_INIT;
        for (size_t n = 0; key->choices[n]; n++)
            buf_printf(&names, "%s%s",
                       n == 0                ? ""
                       : key->choices[n + 1] ? ", "
                                             : " or ",
                       key->choices[n]);
        fail(s, s->line, "%s = %s is not known; give %s", key->name, text, names.data);
        buf_done(&names);
        return s->rc;
    }
    *ret_index = i;
    return 0;
}

static int set_string(struct ini *s, const struct conf_key *key, const char *text)
{
    char **slot = field(s->conf, key);
    size_t len = strlen(text);
    int ignored;
    if (len < (size_t)key->min)
        return fail(s, s->line,
                    "%s must not be empty; give a value or remove the line (default: %s)",
                    key->name, key->default_text);
    if (len >= 2 && (text[0] == '"' || text[0] == '\'') && text[len - 1] == text[0])
        return fail(s, s->line, "%s: values are written without quotes; remove them", key->name);
    if (key->choices && set_choice(s, key, text, &ignored) != 0)
        return s->rc;
    free(*slot);
    *slot = key->type == CONF_PATH && len > 0 ? conf_file_resolve(s->dir, text) : mem_strdup(text);
    return 0;
}

static int set_int(struct ini *s, const struct conf_key *key, const char *text)
{
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (*text == '\0')
        return fail(s, s->line, "%s is empty; give %lld to %lld", key->name, (long long)key->min,
                    (long long)key->max);
    if (*end != '\0')
        return fail(s, s->line, "%s = %s is not a whole number; give %lld to %lld", key->name, text,
                    (long long)key->min, (long long)key->max);
    if (errno != 0 || v < key->min || v > key->max)
        return fail(s, s->line, "%s = %s is out of range; give %lld to %lld", key->name, text,
                    (long long)key->min, (long long)key->max);
    *(int *)field(s->conf, key) = (int)v;
    return 0;
}

static int set_duration(struct ini *s, const struct conf_key *key, const char *text)
{
    int64_t ms = 0;
    bool never = key->type == CONF_AGE && strcmp(text, "never") == 0;
    struct err why;
    if (!never && when_parse_duration(text, &ms, &why) != 0)
        return fail(s, s->line, "%s: %s", key->name, why.text);
    if (ms < key->min || ms > key->max) {
        char lo[WHEN_TEXT_SIZE], hi[WHEN_TEXT_SIZE];
        return fail(s, s->line, "%s = %s is out of range; give %s to %s", key->name, text,
                    when_format_duration(lo, key->min), when_format_duration(hi, key->max));
    }
    *(int64_t *)field(s->conf, key) = ms;
    return 0;
}

static int set_enum(struct ini *s, const struct conf_key *key, const char *text)
{
    int i = 0;
    if (set_choice(s, key, text, &i) != 0)
        return s->rc;
    *(int *)field(s->conf, key) = key->choices == level_names ? log_level_parse(text) : i;
    return 0;
}

static int set_key(struct ini *s, const struct conf_key *key, const char *text)
{
    switch (key->type) {
    case CONF_STRING:
    case CONF_PATH:
        return set_string(s, key, text);
    case CONF_INT:
        return set_int(s, key, text);
    case CONF_DURATION:
    case CONF_AGE:
        return set_duration(s, key, text);
    case CONF_ENUM:
        return set_enum(s, key, text);
    }
    return fail(s, s->line, "%s has a type that is not supported", key->name);
}

static int fail_unknown_key(struct ini *s, const char *section, const char *name)
{
    if (strcmp(name, "password") == 0)
        return fail(
            s, s->line,
            "a password is not kept in this file; write it to a file of its own, chmod 600 that, and name it here: "
            "password_file = PATH");
    const char *names[KEY_COUNT];
    size_t count = 0;
    const char *elsewhere = NULL;
    for (size_t i = 0; i < KEY_COUNT; i++) {
        if (strcmp(conf_keys[i].section, section) == 0)
            names[count++] = conf_keys[i].name;
        else if (strcmp(conf_keys[i].name, name) == 0)
            elsewhere = conf_keys[i].section;
    }
    if (*section == '\0' && elsewhere)
        return fail(s, s->line, "%s is outside any section; put it under [%s]", name, elsewhere);
    if (*section == '\0')
        return fail(s, s->line,
                    "unknown key \"%s\" before any section; dq.ini(5) lists the sections and keys",
                    name);
    if (elsewhere)
        return fail(s, s->line, "%s is a key of [%s], not of [%s]; move it there", name, elsewhere,
                    section);
    const char *nearest = text_nearest(name, names, count);
    if (nearest)
        return fail(s, s->line, "unknown key \"%s\" in [%s]; did you mean \"%s\"?", name, section,
                    nearest);
    return fail(s, s->line, "unknown key \"%s\" in [%s]; dq.ini(5) lists the keys", name, section);
}

/* Called by inih for every KEY = VALUE; 0 says that the pair is wrong. */
static int take_pair(void *user, const char *section, const char *name, const char *value)
{
    struct ini *s = user;
    if (s->rc != 0 || !name || !value)
        return s->rc == 0 && !name;
    for (size_t i = 0; i < KEY_COUNT; i++) {
        const struct conf_key *key = &conf_keys[i];
        if (strcmp(key->section, section) != 0 || strcmp(key->name, name) != 0)
            continue;
        if (s->seen[i] != 0)
            return fail(s, s->line, "%s is given twice, first on line %u; remove one of them", name,
                        s->seen[i]) == 0;
        s->seen[i] = s->line;
        return set_key(s, key, value) == 0;
    }
    return fail_unknown_key(s, section, name) == 0;
}

static int check_section(struct ini *s, const char *text, size_t len)
{
    const char *close = memchr(text, ']', len);
    if (!close || close != text + len - 1)
        return fail(s, s->line, "a section is written [name] on a line of its own");
    char *name = mem_dup(text + 1, len - 2);
    size_t count = sizeof section_names / sizeof section_names[0], i = 0;
    while (i < count && strcmp(section_names[i], name) != 0)
        i++;
    if (i == count) {
        const char *nearest = text_nearest(name, section_names, count);
        if (nearest)
            fail(s, s->line, "unknown section [%s]; did you mean [%s]?", name, nearest);
        else
            fail(s, s->line, "unknown section [%s]; there are [mysql], [dqd], [retention] and [dq]",
                 name);
    }
    free(name);
    return s->rc;
}

/* text is one line without indentation and line end, no comment and not empty. */
static int check_line(struct ini *s, const char *text, size_t len, int size)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        if ((c < 0x20 && c != '\t') || c == 0x7f)
            return fail(s, s->line,
                        "character %zu is an invisible control character (0x%02x); remove it",
                        i + 1, c);
        if (i > 0 && (c == ';' || c == '#') && (text[i - 1] == ' ' || text[i - 1] == '\t'))
            return fail(s, s->line, "\" %c\" inside a line: a comment needs a line of its own", c);
    }
    if (len + 2 > (size_t)size)
        return fail(s, s->line, "the line has %zu characters, %d are allowed; shorten it", len,
                    size - 2);
    return text[0] == '[' ? check_section(s, text, len) : 0;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* The ini_reader: fgets(3) over the text in memory. Lines reach inih without indentation, comments
 * as empty lines. */
static char *read_line(char *out, int size, void *stream)
{
    struct ini *s = stream;
    if (s->rc != 0 || s->pos == s->end)
        return NULL;
    const char *text = s->pos, *newline = memchr(text, '\n', (size_t)(s->end - text));
    const char *stop = newline ? newline : s->end;
    s->pos = newline ? newline + 1 : s->end;
    if (++s->line == 1 && stop - text >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        text += 3;
    while (text < stop && is_blank(*text))
        text++;
    while (stop > text && is_blank(stop[-1]))
        stop--;
    size_t len = (size_t)(stop - text);
    if (len > 0 && (*text == ';' || *text == '#'))
        len = 0;
    if (len > 0 && check_line(s, text, len, size) != 0)
        return NULL;
    memcpy(out, text, len);
    memcpy(out + len, "\n", 2);
    return out;
}

static unsigned line_of(const struct ini *s, const void *value)
{
    for (size_t i = 0; i < KEY_COUNT; i++)
        if (field(s->conf, &conf_keys[i]) == value)
            return s->seen[i];
    return 0;
}

/* One element of the host list: NAME, NAME:PORT, [IPV6], [IPV6]:PORT or a bare IPv6 address. */
static bool is_host(const char *text, size_t len)
{
    const char *end = text + len, *close = *text == '[' ? memchr(text, ']', len) : NULL;
    const char *after = close ? close + 1 : text,
               *colon = memchr(after, ':', (size_t)(end - after));
    if (*text == '[' && (!close || close == text + 1 || (close + 1 != end && colon != close + 1)))
        return false;
    if (!colon || (!close && memchr(colon + 1, ':', (size_t)(end - colon - 1))))
        return true;
    size_t digits = strspn(colon + 1, "0123456789");
    unsigned long port = digits > 0 && digits <= 5 ? strtoul(colon + 1, NULL, 10) : 0;
    return colon > text && colon + 1 + digits == end && port >= 1 && port <= 65535;
}

static int check_hosts(struct ini *s)
{
    static const char blanks[] = ", \t";
    const char *host = s->conf->mysql.host, *p = host + strspn(host, blanks);
    if (*host && !*p)
        return fail(s, line_of(s, &s->conf->mysql.host),
                    "host = %s names no host; write db1, db1:3307 or [::1]:3307", host);
    for (const char *comma = strchr(p, ','); comma; comma = strchr(comma, ',')) {
        comma += 1 + strspn(comma + 1, " \t");
        if (!*comma || *comma == ',')
            return fail(s, line_of(s, &s->conf->mysql.host),
                        "host = %s: there is no name after one of the commas", host);
    }
    for (size_t len; (len = strcspn(p, blanks)) > 0; p += len + strspn(p + len, blanks))
        if (!is_host(p, len))
            return fail(s, line_of(s, &s->conf->mysql.host),
                        "host: \"%.*s\" is not a host; write db1, db1:3307 or [::1]:3307", (int)len,
                        p);
    return 0;
}

/* What no single key can get wrong. A default never breaks a rule against another, so one of the
 * two keys has a line. */
static int check_together(struct ini *s)
{
    struct conf *c = s->conf;
    char a[WHEN_TEXT_SIZE], b[WHEN_TEXT_SIZE];
    unsigned lease = line_of(s, &c->dqd.lease_ms), poll = line_of(s, &c->dqd.poll_interval_ms),
             beat = line_of(s, &c->dqd.heartbeat_ms);
    if (c->dqd.lease_ms < 4 * c->dqd.poll_interval_ms)
        return fail(
            s, lease ? lease : poll,
            "lease (%s) must be at least four times poll_interval (%s); raise lease or lower poll_interval",
            when_format_duration(a, c->dqd.lease_ms),
            when_format_duration(b, c->dqd.poll_interval_ms));
    if (c->dqd.heartbeat_ms >= c->dqd.lease_ms)
        return fail(
            s, beat ? beat : lease,
            "heartbeat (%s) must be shorter than lease (%s); lower heartbeat or raise lease",
            when_format_duration(a, c->dqd.heartbeat_ms), when_format_duration(b, c->dqd.lease_ms));
    unsigned cert = line_of(s, &c->mysql.tls_cert), tls_key = line_of(s, &c->mysql.tls_key);
    if ((*c->mysql.tls_cert == '\0') != (*c->mysql.tls_key == '\0'))
        return fail(s, cert ? cert : tls_key,
                    "tls_cert and tls_key go together; give both or neither");
    if (c->mysql.tls >= CONF_TLS_VERIFY_CA && *c->mysql.tls_ca == '\0')
        return fail(s, line_of(s, &c->mysql.tls),
                    "tls = %s needs tls_ca, the file with the authority's certificate",
                    tls_names[c->mysql.tls]);
    return check_hosts(s);
}

static int parse(struct ini *s, const struct buf *text)
{
    for (size_t i = 0; i < KEY_COUNT; i++)
        if (set_key(s, &conf_keys[i], conf_keys[i].default_text) != 0)
            return s->rc;
    int bad_line = 0;
    if (text->len > 0) {
        s->pos = text->data;
        s->end = text->data + text->len;
        bad_line = ini_parse_stream(read_line, s, take_pair, s);
    }
    if (bad_line > 0 && (s->rc == 0 || (unsigned)bad_line < s->fault_line))
        return fail(s, (unsigned)bad_line,
                    "neither [section] nor KEY = VALUE; a comment begins with # or ;");
    if (bad_line < 0 && s->rc == 0)
        return err_set(s->err, ERR_FATAL, "%s: the INI library is out of memory", s->file);
    return s->rc != 0 ? s->rc : check_together(s);
}

int conf_load(const char *explicit_path, struct conf **ret_conf, struct err *err)
{
    char *file = conf_file_find(explicit_path, err);
    if (!file)
        return ERR_CONFIG;
    struct buf text = BUF_INIT;
    struct conf *c = mem_zero(1, sizeof *c);
    struct ini s = {.file = file, .conf = c, .err = err};
    int rc = conf_file_read(file, "configuration file", FILE_MAX, &text, err);
    if (rc != 0)
        goto out;
    c->path = conf_file_absolute(file);
    s.dir = conf_file_directory(c->path);
    rc = parse(&s, &text);
    if (rc != 0)
        goto out;
    *ret_conf = c;
    c = NULL;
out:
    conf_free(c);
    buf_done(&text);
    free(s.dir);
    free(file);
    return rc;
}

void conf_free(struct conf *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < KEY_COUNT; i++)
        if (conf_keys[i].type == CONF_STRING || conf_keys[i].type == CONF_PATH)
            free(*(char **)field(c, &conf_keys[i]));
    free(c->path);
    free(c);
}

const char *conf_or_null(const char *text)
{
    return text && *text ? text : NULL;
}

static bool same(const struct conf *a, const struct conf *b, const struct conf_key *key)
{
    const void *x = (const char *)a + key->offset, *y = (const char *)b + key->offset;

    switch (key->type) {
    case CONF_STRING:
    case CONF_PATH:
        return strcmp(*(char *const *)x, *(char *const *)y) == 0;
    case CONF_DURATION:
    case CONF_AGE:
        return memcmp(x, y, sizeof(int64_t)) == 0;
    default:
        return memcmp(x, y, sizeof(int)) == 0;
    }
}

const struct conf_key *conf_take_reloadable(struct conf *to, const struct conf *from)
{
    const struct conf_key *left = NULL;

    for (size_t i = 0; i < KEY_COUNT; i++) {
        const struct conf_key *key = &conf_keys[i];
        if (same(to, from, key))
            continue;
        if (!key->reloadable)
            left = left ? left : key;
        else if (key->type == CONF_DURATION || key->type == CONF_AGE)
            memcpy(field(to, key), (const char *)from + key->offset, sizeof(int64_t));
        else
            memcpy(field(to, key), (const char *)from + key->offset, sizeof(int));
    }
    return left;
}
