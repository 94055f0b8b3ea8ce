/*
 * conf_value.h - values of settings, from text: the part that the file and the environment share.
 * Private to src/conf.
 */
#ifndef DQ_CONF_CONF_VALUE_H
#define DQ_CONF_CONF_VALUE_H

#include "base/err.h"
#include "conf/conf.h"

#include <stddef.h>

/* Where a value is given: in a variable, or else on a line of the file; {0}: nowhere. */
struct conf_place {
    char *variable; /* its name */
    unsigned line;
};

/* Settings that are being read. */
struct conf_reading {
    const char *file; /* as it was named: goes into messages */
    char *dir;        /* of the file: where relative paths begin */
    struct conf *conf;
    struct conf_place *places; /* of each key, by its index in conf_keys */
    struct conf_place at;      /* of what is read now */
    int rc;                    /* of the first fault, which ends the reading */
    unsigned fault_line;
    struct err *err;
};

/* Records the first fault, of what is given at that place; NULL: at r->at. Returns ERR_CONFIG. */
int conf_value_fail(struct conf_reading *r, const struct conf_place *at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Whether a text has only characters that can be part of a value. 0 or ERR_CONFIG. */
int conf_value_check(struct conf_reading *r, const char *text, size_t len);

/* Stores a value that is given at r->at. 0 or ERR_CONFIG. */
int conf_value_set(struct conf_reading *r, const struct conf_key *key, const char *text);

#endif
