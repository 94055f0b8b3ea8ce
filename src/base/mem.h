/*
 * mem.h - allocation that cannot fail.
 *
 * Out of memory aborts the process with one line on stderr: leases make a crash safe, and
 * half-handled exhaustion does not.
 */
#ifndef DQ_BASE_MEM_H
#define DQ_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>

/* Like malloc, calloc, realloc, strdup, but never NULL. The caller frees with free(). */
void *mem_alloc(size_t size) __attribute__((malloc, warn_unused_result));
void *mem_zero(size_t count, size_t size) __attribute__((malloc, warn_unused_result));
void *mem_resize(void *p, size_t count, size_t size) __attribute__((warn_unused_result));
/* Makes room for one more item behind the first count; then there is room for *cap. NULL with a
 * *cap of 0 is an empty array. */
void *mem_room(void *p, size_t count, size_t *cap, size_t size) __attribute__((warn_unused_result));
#define MEM_ROOM(items, count, cap) (items) = mem_room(items, count, &(cap), sizeof *(items))
#define MEM_COUNT(array) (sizeof(array) / sizeof((array)[0]))
char *mem_strdup(const char *s) __attribute__((malloc, warn_unused_result)); /* NULL stays NULL */
/* one NUL byte is added behind */
void *mem_dup(const void *p, size_t len) __attribute__((malloc, warn_unused_result));
char *mem_printf(const char *fmt, ...)
    __attribute__((malloc, warn_unused_result, format(printf, 1, 2)));
/* `MEM_LOCAL char *s = mem_strdup(...)` is freed when its scope ends: what is heap memory of one
 * function alone. LOCAL_BY(x_done) the same of a struct, which x_done takes. */
#define MEM_LOCAL LOCAL_BY(mem_local)
#define LOCAL_BY(done) __attribute__((cleanup(done)))
void mem_local(void *pointer);
/* Whether the limits of this process leave so much (ulimit -v); a control group's do not count. */
bool mem_has(size_t size);

#endif
