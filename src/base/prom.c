/*
 * prom.c - see prom.h. Invariant: a value of a label stays one value on one line, whatever it
 * holds.
 */
#include "base/prom.h"

#include "base/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

void prom_metric(struct buf *b, const char *name, const char *type, const char *help)
{
    buf_printf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* Escaped twice: what a terminal would act on, which keeps different values different, and then
 * what ends a value. */
static void put_value(struct buf *b, const char *value)
{
    BUF_LOCAL struct buf inert = BUF_INIT;

    text_escape(&inert, value, strlen(value), 0);
    for (size_t i = 0; i < inert.len; i++) {
        if (inert.data[i] == '"' || inert.data[i] == '\\')
            buf_chr(b, '\\');
        buf_chr(b, inert.data[i]);
    }
}

static void put_name(struct buf *b, const char *name, va_list labels)
{
    const char *label, *separator = "{";

    buf_str(b, name);
    while ((label = va_arg(labels, const char *))) {
        buf_printf(b, "%s%s=\"", separator, label);
        put_value(b, va_arg(labels, const char *));
        buf_chr(b, '"');
        separator = ",";
    }
    buf_str(b, *separator == ',' ? "} " : " ");
}

void prom_u64(struct buf *b, const char *name, uint64_t number, ...)
{
    va_list labels;

    va_start(labels, number);
    put_name(b, name, labels);
    va_end(labels);
    buf_printf(b, "%" PRIu64 "\n", number);
}

void prom_seconds(struct buf *b, const char *name, int64_t ms, ...)
{
    va_list labels;

    va_start(labels, ms);
    put_name(b, name, labels);
    va_end(labels);
    buf_printf(b, "%s%" PRId64 ".%03d\n", ms < 0 ? "-" : "", (ms < 0 ? -ms : ms) / 1000,
               (int)((ms < 0 ? -ms : ms) % 1000));
}
