/*
 * conf_value.c - values of settings, from text. Invariant: a value that is out of range is not
 * stored, and the message says where it was given.
 */
#include "conf/conf_value.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/when.h"
#include "base/when_parse.h"
#include "conf/conf_file.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

int conf_value_fail(struct conf_reading *r, const struct conf_place *at, const char *fmt, ...)
{
    const struct conf_place *where = at ? at : &r->at;
    va_list ap;

    va_start(ap, fmt);
    r->rc = err_vset(r->err, ERR_CONFIG, fmt, ap);
    va_end(ap);
    r->fault_line = where->line;
    return where->variable ? err_prefix(r->err, "%s", where->variable)
                           : err_prefix(r->err, "%s:%u", r->file, where->line);
}

static int choice_index(const struct conf_key *key, const char *text)
{
    for (int i = 0; key->choices[i]; i++)
        if (strcmp(key->choices[i], text) == 0)
            return i;
    return -1;
}

static int set_choice(struct conf_reading *r, const struct conf_key *key, const char *text,
                      int *ret_index)
{
    int i = choice_index(key, text);
    if (i < 0) {
        BUF_LOCAL struct buf names = BUF_INIT;
        for (size_t n = 0; key->choices[n]; n++)
            buf_printf(&names, "%s%s",
                       n == 0                ? ""
                       : key->choices[n + 1] ? ", "
                                             : " or ",
                       key->choices[n]);
        conf_value_fail(r, NULL, "%s = %s is not known; give %s", key->name, text, names.data);
        return r->rc;
    }
    *ret_index = i;
    return 0;
}

static int set_string(struct conf_reading *r, const struct conf_key *key, const char *text)
{
    char **slot = conf_field(r->conf, key);
    size_t len = strlen(text);
    int ignored;
    if (len < (size_t)key->min)
        return conf_value_fail(
            r, NULL, "%s must not be empty; give a value or remove the line (default: %s)",
            key->name, key->default_text);
    if (len >= 2 && (text[0] == '"' || text[0] == '\'') && text[len - 1] == text[0])
        return conf_value_fail(r, NULL, "%s: values are written without quotes; remove them",
                               key->name);
    if (key->choices && set_choice(r, key, text, &ignored) != 0)
        return r->rc;
    free(*slot);
    *slot = key->type == CONF_PATH && len > 0 ? conf_file_resolve(r->dir, text) : mem_strdup(text);
    return 0;
}

static int set_int(struct conf_reading *r, const struct conf_key *key, const char *text)
{
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (*text == '\0')
        return conf_value_fail(r, NULL, "%s is empty; give %lld to %lld", key->name,
                               (long long)key->min, (long long)key->max);
    if (*end != '\0')
        return conf_value_fail(r, NULL, "%s = %s is not a whole number; give %lld to %lld",
                               key->name, text, (long long)key->min, (long long)key->max);
    if (errno != 0 || v < key->min || v > key->max)
        return conf_value_fail(r, NULL, "%s = %s is out of range; give %lld to %lld", key->name,
                               text, (long long)key->min, (long long)key->max);
    *(int *)conf_field(r->conf, key) = (int)v;
    return 0;
}

static int read_duration(struct conf_reading *r, const struct conf_key *key, const char *text,
                         int64_t *ret)
{
    int64_t ms = 0;
    bool never = key->type == CONF_AGE && strcmp(text, "never") == 0;
    struct err why;
    if (!never && when_parse_duration(text, &ms, &why) != 0)
        return conf_value_fail(r, NULL, "%s: %s", key->name, why.text);
    if (ms < key->min || ms > key->max) {
        char lo[WHEN_TEXT_SIZE], hi[WHEN_TEXT_SIZE];
        return conf_value_fail(r, NULL, "%s = %s is out of range; give %s to %s", key->name, text,
                               when_format_duration(lo, key->min),
                               when_format_duration(hi, key->max));
    }
    *ret = ms;
    return 0;
}

static int set_range(struct conf_reading *r, const struct conf_key *key, const char *text)
{
    int64_t *field = conf_field(r->conf, key), most, least;
    const char *dots = strstr(text, "..");
    MEM_LOCAL char *first = mem_strdup(text);
    int rc = read_duration(r, key, dots ? dots + 2 : text, &most);

    if (dots)
        first[dots - text] = '\0';
    if (rc == 0)
        rc = read_duration(r, key, first, &least);
    if (rc == 0 && least > most)
        rc = conf_value_fail(r, NULL, "%s = %s: the lower value comes first", key->name, text);
    if (rc == 0) {
        field[0] = most;
        field[1] = least;
    }
    return rc;
}

static int set_enum(struct conf_reading *r, const struct conf_key *key, const char *text)
{
    int i = 0;
    if (set_choice(r, key, text, &i) != 0)
        return r->rc;
    *(int *)conf_field(r->conf, key) = (int)key->min + i;
    return 0;
}

int conf_value_set(struct conf_reading *r, const struct conf_key *key, const char *text)
{
    switch (key->type) {
    case CONF_STRING:
    case CONF_PATH:
        return set_string(r, key, text);
    case CONF_INT:
        return set_int(r, key, text);
    case CONF_DURATION:
    case CONF_AGE:
        return read_duration(r, key, text, conf_field(r->conf, key));
    case CONF_RANGE:
        return set_range(r, key, text);
    case CONF_ENUM:
        return set_enum(r, key, text);
    }
    return conf_value_fail(r, NULL, "%s has a type that is not supported", key->name);
}

/* ---- what holds for a value, wherever it is written */

int conf_value_check(struct conf_reading *r, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        if ((c < 0x20 && c != '\t') || c == 0x7f)
            return conf_value_fail(
                r, &r->at, "character %zu is an invisible control character (0x%02x); remove it",
                i + 1, c);
    }
    return 0;
}
