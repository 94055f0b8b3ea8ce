/*
 * conf_load.c - see conf_load.h.
 *
 * Invariant: a struct conf that conf_load hands out has every field set and in range.
 */
#include "conf/conf_load.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/when.h"
#include "conf/conf_env.h"
#include "conf/conf_file.h"
#include "conf/conf_ini.h"
#include "conf/conf_value.h"

#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#define FILE_MAX ((size_t)64 * 1024)

/* ---- what no single key can get wrong */

/* The setting whose value this is. */
static const struct conf_key *key_of(struct conf *c, const void *value)
{
    const struct conf_key *key = conf_keys;
    while (conf_field(c, key) != value)
        key++;
    return key;
}

static const struct conf_place *place_of(const struct conf_reading *r, const void *value)
{
    return &r->places[key_of(r->conf, value) - conf_keys];
}

/* The place of the first of two settings, unless that is a default. A default never breaks a rule
 * against another one, so one of the two is given. */
static const struct conf_place *given(const struct conf_reading *r, const void *first,
                                      const void *second)
{
    const struct conf_place *at = place_of(r, first);

    return at->line || at->variable ? at : place_of(r, second);
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

static int check_hosts(struct conf_reading *r)
{
    static const char blanks[] = ", \t";
    const char *host = r->conf->mysql.host, *p = host + strspn(host, blanks);
    if (strchr(host, '@')) /* which may be behind a password: the value is not quoted */
        return conf_value_fail(
            r, place_of(r, &r->conf->mysql.host),
            "host: no account belongs before a host; write it to user and password_file");
    if (*host && !*p)
        return conf_value_fail(r, place_of(r, &r->conf->mysql.host),
                               "host = %s names no host; write db1, db1:3307 or [::1]:3307", host);
    for (const char *comma = strchr(p, ','); comma; comma = strchr(comma, ',')) {
        comma += 1 + strspn(comma + 1, " \t");
        if (!*comma || *comma == ',')
            return conf_value_fail(r, place_of(r, &r->conf->mysql.host),
                                   "host = %s: there is no name after one of the commas", host);
    }
    for (size_t len; (len = strcspn(p, blanks)) > 0; p += len + strspn(p + len, blanks))
        if (!is_host(p, len))
            return conf_value_fail(
                r, place_of(r, &r->conf->mysql.host),
                "host: \"%.*s\" is not a host; write db1, db1:3307 or [::1]:3307", (int)len, p);
    return 0;
}

static int check_together(struct conf_reading *r)
{
    struct conf *c = r->conf;
    char a[WHEN_TEXT_SIZE], b[WHEN_TEXT_SIZE];
    if (c->dqd.lease_ms < 4 * conf_check_ms(c))
        return conf_value_fail(
            r, given(r, &c->dqd.lease_ms, &c->dqd.poll_interval_ms),
            "lease (%s) must be at least four times poll_interval (%s); raise lease or lower poll_interval",
            when_format_duration(a, c->dqd.lease_ms), when_format_duration(b, conf_check_ms(c)));
    if (c->dqd.heartbeat_ms >= c->dqd.lease_ms)
        return conf_value_fail(
            r, given(r, &c->dqd.heartbeat_ms, &c->dqd.lease_ms),
            "heartbeat (%s) must be shorter than lease (%s); lower heartbeat or raise lease",
            when_format_duration(a, c->dqd.heartbeat_ms), when_format_duration(b, c->dqd.lease_ms));
    if ((*c->mysql.tls_cert == '\0') != (*c->mysql.tls_key == '\0'))
        return conf_value_fail(r, given(r, &c->mysql.tls_cert, &c->mysql.tls_key),
                               "tls_cert and tls_key go together; give both or neither");
    if (c->mysql.tls >= CONF_TLS_VERIFY_CA && *c->mysql.tls_ca == '\0')
        return conf_value_fail(r, place_of(r, &c->mysql.tls),
                               "tls = %s needs tls_ca, the file with the authority's certificate",
                               key_of(c, &c->mysql.tls)->choices[c->mysql.tls]);
    c->mysql.unacknowledged_ms = MIN(c->mysql.read_timeout_ms, c->dqd.lease_ms / 4);
    return check_hosts(r);
}

/* ---- reading */

static int read_all(struct conf_reading *r, const struct buf *text)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < conf_key_count; i++)
        rc = conf_value_set(r, &conf_keys[i], conf_keys[i].default_text);
    if (rc == 0)
        rc = conf_ini_read(r, text);
    if (rc == 0)
        rc = conf_env_read(r);
    return rc == 0 ? check_together(r) : rc;
}

/* The variables that set something; NULL: none. */
static char *names_of(const struct conf_reading *r)
{
    struct buf names = BUF_INIT;

    for (size_t i = 0; i < conf_key_count; i++)
        if (r->places[i].variable)
            buf_printf(&names, "%s%s", names.len ? " " : "", r->places[i].variable);
    return names.len ? buf_take(&names) : NULL;
}

int conf_load(const char *explicit_path, struct conf **ret_conf, struct err *err)
{
    char *file = conf_file_find(explicit_path, err);
    if (!file)
        return ERR_CONFIG;
    BUF_LOCAL struct buf text = BUF_INIT;
    struct conf *c = mem_zero(1, sizeof *c);
    struct conf_reading r = {
        .file = file, .conf = c, .places = mem_zero(conf_key_count, sizeof *r.places), .err = err};
    int rc = conf_file_read(file, "configuration file", FILE_MAX, &text, err);
    if (rc != 0)
        goto out;
    c->path = conf_file_absolute(file);
    r.dir = conf_file_directory(c->path);
    rc = read_all(&r, &text);
    if (rc != 0)
        goto out;
    c->variables = names_of(&r);
    *ret_conf = c;
    c = NULL;
out:
    conf_free(c);
    for (size_t i = 0; i < conf_key_count; i++)
        free(r.places[i].variable);
    free(r.places);
    free(r.dir);
    free(file);
    return rc;
}
