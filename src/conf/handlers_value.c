/*
 * handlers_value.c - see handlers_value.h.
 */
#include "conf/handlers_value.h"

#include "base/when.h"
#include "base/when_parse.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int(handlers_fail)(const struct handlers_loader *l, const struct handlers_node *at, const char *fmt,
                   ...)
{
    va_list ap;
    va_start(ap, fmt);
    (void)err_vset(l->err, ERR_CONFIG, fmt, ap);
    va_end(ap);
    (void)err_prefix(l->err, "%s:%u:%u", l->file, at->line, at->column);
    return ERR_CONFIG;
}

int handlers_want_text(const struct handlers_loader *l, const char *name,
                       const struct handlers_node *value, const char **ret)
{
    if (value->kind != HANDLERS_NODE_SCALAR)
        return handlers_fail(l, value, "%s must be one value, not a %s", name,
                             value->kind == HANDLERS_NODE_LIST ? "list" : "mapping");
    if (value->is_null || value->text[strspn(value->text, " \t\r\n")] == '\0')
        return handlers_fail(l, value, "%s is empty; give a value or remove the line", name);
    if (strlen(value->text) > HANDLERS_VALUE_MAX)
        return handlers_fail(
            l, value,
            "%s is longer than %d bytes, which no program can be given; put it into a file", name,
            HANDLERS_VALUE_MAX);
    *ret = value->text;
    return 0;
}

int handlers_want_number(const struct handlers_loader *l, const char *name,
                         const struct handlers_node *value, int64_t min, int64_t max, int *ret)
{
    const char *text;
    int rc = handlers_want_text(l, name, value, &text);
    if (rc != 0)
        return rc;
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (*end != '\0')
        return handlers_fail(l, value, "%s: \"%s\" is not a whole number; give %lld to %lld", name,
                             text, (long long)min, (long long)max);
    if (errno != 0 || v < min || v > max)
        return handlers_fail(l, value, "%s: %s is out of range; give %lld to %lld", name, text,
                             (long long)min, (long long)max);
    *ret = (int)v;
    return 0;
}

int handlers_want_duration(const struct handlers_loader *l, const char *name,
                           const struct handlers_node *value, int64_t min, int64_t max,
                           int64_t *ret)
{
    const char *text;
    int rc = handlers_want_text(l, name, value, &text);
    if (rc != 0)
        return rc;
    struct err why;
    int64_t ms;
    if (when_parse_duration(text, &ms, &why) != 0)
        return handlers_fail(l, value, "%s: %s", name, why.text);
    if (ms < min || ms > max) {
        char lo[WHEN_TEXT_SIZE], hi[WHEN_TEXT_SIZE];
        return handlers_fail(l, value, "%s: %s is out of range; give %s to %s", name, text,
                             when_format_duration(lo, min), when_format_duration(hi, max));
    }
    *ret = ms;
    return 0;
}
