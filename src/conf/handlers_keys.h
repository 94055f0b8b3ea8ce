/*
 * handlers_keys.h - the keys of a handler and of `defaults`. Private to src/conf.
 */
#ifndef DQ_CONF_HANDLERS_KEYS_H
#define DQ_CONF_HANDLERS_KEYS_H

#include "base/err.h"
#include "conf/handlers.h"
#include "conf/handlers_yaml.h"

#include <stdbool.h>

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

/* Every key that `defaults` and a handler may have, NULL-terminated; the manual and the sample are
 * checked against it. */
extern const char *const handlers_keys[];

/* A handler with every default of the manual and no name or command. The caller frees what it
 * points to. */
void handlers_keys_init(struct handler *h);

/* Sets in h every key of a mapping; is_default: run is refused. ERR_CONFIG, h then being half
 * changed but fit to be freed. */
int handlers_keys_read(const struct handlers_loader *l, const struct handlers_node *map,
                       bool is_default, struct handler *h) __attribute__((warn_unused_result));

#endif
