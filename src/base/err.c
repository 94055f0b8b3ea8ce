/*
 * err.c - fills a struct err.
 *
 * Invariant: text is always one NUL-terminated line of UTF-8 on which no terminal acts, whatever
 * was formatted into it, and arguments may point into the very struct that is being filled.
 */
#include "base/err.h"

#include "base/text.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/param.h>

/* A newline or an escape sequence from data must not reach the operator's terminal. */
static void err_disarm(char *s, size_t len)
{
    for (size_t n; len; s += n, len -= n) {
        uint32_t c;
        n = text_utf8_next(s, len, &c);
        bool unsafe = n == 0 || text_char_unsafe(c);
        n = n ? n : 1;
        if (unsafe)
            memset(s, '?', n);
    }
}

/* Moves s into err->text, cutting at a character's boundary. `cut`: s is already only a part. */
static void err_store(struct err *err, char *s, bool cut)
{
    size_t len = strlen(s), max = sizeof err->text - 1;
    if (len > max || cut) {
        len = text_cut(s, MIN(len, max - 3));
        memcpy(s + len, "...", 4);
        len += 3;
    }
    err_disarm(s, len);
    memcpy(err->text, s, len + 1);
}

int err_vset(struct err *err, int code, const char *fmt, va_list ap)
{
    char text[2 * sizeof err->text];

    if (!err)
        return code;
    int n = vsnprintf(text, sizeof text, fmt, ap);
    if (n < 0)
        memcpy(text, "?", 2);
    err->code = code;
    err_store(err, text, n >= (int)sizeof text);
    return code;
}

int(err_set)(struct err *err, int code, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    err_vset(err, code, fmt, ap);
    va_end(ap);
    return code;
}

int err_system(int error)
{
    bool is_short = error == EAGAIN || error == ENOMEM || error == EMFILE || error == ENFILE;

    return is_short ? ERR_TRANSIENT : ERR_SYSTEM;
}

int err_prefix(struct err *err, const char *fmt, ...)
{
    char text[3 * sizeof err->text];

    if (!err)
        return ERR_FATAL;
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(text, 2 * sizeof err->text, fmt, ap);
    va_end(ap);
    size_t len = n < 0 ? 0 : strlen(text);
    snprintf(text + len, sizeof text - len, ": %s", err->text);
    err_store(err, text, false);
    return err->code;
}

bool err_may_pass(int code)
{
    return code == ERR_LOST || code == ERR_UNAVAILABLE || code == ERR_TRANSIENT ||
           code == ERR_LOCKED;
}

int err_exit_status(int code)
{
    switch (code) {
    case ERR_NONE:
        return 0;
    case ERR_NOT_FOUND:
    case ERR_STATE:
        return 1;
    case ERR_USAGE:
        return 64;
    case ERR_DATA:
    case ERR_DUPLICATE:
        return 65;
    case ERR_UNAVAILABLE:
    case ERR_LOST:
        return 69;
    case ERR_SYSTEM:
        return 71;
    case ERR_TRANSIENT:
    case ERR_BUSY:
    case ERR_LOCKED:
        return 75;
    case ERR_DENIED:
        return 77;
    case ERR_CONFIG:
        return 78;
    default:
        return 70;
    }
}
