/*
 * mem.c - malloc and friends that never return NULL.
 *
 * Invariant: a caller that gets control back has its memory; sizes that would overflow count as
 * exhaustion.
 */
#include "base/mem.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROOM_FIRST 16 /* items */

static _Noreturn void mem_die(void)
{
    static const char line[] = ": out of memory\n";

    /* Without stdio, which may need memory itself, and without waiting for a reader: a runner that
     * hangs here would kill no handler. */
    struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};

    if (poll(&p, 1, 0) != 1 ||
        write(STDERR_FILENO, program_invocation_short_name, strlen(program_invocation_short_name)) <
            0 ||
        write(STDERR_FILENO, line, sizeof line - 1) < 0)
        abort();
    abort();
}

static void *mem_check(void *p)
{
    if (!p)
        mem_die();
    return p;
}

void *mem_alloc(size_t size)
{
    return mem_check(malloc(size ? size : 1));
}

void *mem_zero(size_t count, size_t size)
{
    return mem_check(calloc(count ? count : 1, size ? size : 1));
}

void *mem_resize(void *p, size_t count, size_t size)
{
    return mem_check(reallocarray(p, count ? count : 1, size ? size : 1));
}

void *mem_room(void *p, size_t count, size_t *cap, size_t size)
{
    if (count < *cap)
        return p;
    *cap = *cap ? 2 * *cap : ROOM_FIRST;
    return mem_resize(p, *cap, size);
}

char *mem_strdup(const char *s)
{
    return s ? mem_dup(s, strlen(s)) : NULL;
}

void *mem_dup(const void *p, size_t len)
{
    if (len == SIZE_MAX)
        mem_die();
    char *copy = mem_alloc(len + 1);
    if (len)
        memcpy(copy, p, len);
    copy[len] = '\0';
    return copy;
}

char *mem_printf(const char *fmt, ...)
{
    char *s = NULL;
    va_list ap;

    va_start(ap, fmt);
    int n = vasprintf(&s, fmt, ap);
    va_end(ap);
    if (n < 0)
        mem_die();
    return s;
}

bool mem_has(size_t size)
{
    void *volatile p = malloc(size); /* volatile: a compiler may leave out both calls */

    free(p);
    return p;
}

void mem_local(void *pointer)
{
    void *p;

    memcpy(&p, pointer, sizeof p);
    free(p);
}
