/*
 * handlers_value.h - single values of a handlers file. Private to src/conf.
 */
#ifndef DQ_CONF_HANDLERS_VALUE_H
#define DQ_CONF_HANDLERS_VALUE_H

#include "base/err.h"
#include "conf/handlers_yaml.h"

#include <stdbool.h>
#include <stdint.h>

/* Linux: one argument or environment string, its NUL left out */
#define HANDLERS_VALUE_MAX (128 * 1024 - 1)

struct handlers_loader {
    const char *file; /* as it was named: goes into messages */
    char *dir;        /* where relative paths begin */
    bool accounts;    /* look up those that are named */
    struct err *err;
};

/* Sets l->err to "FILE:LINE:COLUMN: ..." of a node; returns ERR_CONFIG. */
int handlers_fail(const struct handlers_loader *l, const struct handlers_node *at, const char *fmt,
                  ...) __attribute__((format(printf, 3, 4)));
#ifdef __clang_analyzer__ /* as in base/err.h */
#define handlers_fail(l, ...) (handlers_fail(l, __VA_ARGS__), ERR_CONFIG)
#endif

/* A value as text that is not empty and fits into one argument, as a decimal number, as a duration
 * in ms. name: for messages. ERR_CONFIG: it is none, or out of range. */
int handlers_want_text(const struct handlers_loader *l, const char *name,
                       const struct handlers_node *value, const char **ret);
int handlers_want_number(const struct handlers_loader *l, const char *name,
                         const struct handlers_node *value, int64_t min, int64_t max, int *ret);
int handlers_want_duration(const struct handlers_loader *l, const char *name,
                           const struct handlers_node *value, int64_t min, int64_t max,
                           int64_t *ret);

#endif
