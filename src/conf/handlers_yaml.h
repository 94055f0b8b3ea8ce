/*
 * handlers_yaml.h - a YAML text as a small tree whose nodes have line and column. Private to
 * src/conf.
 *
 * The plain part of YAML only: one document of mappings, lists and scalars. Aliases, anchors, tags,
 * merge keys, duplicate keys, keys that are not scalars and NUL bytes are refused, depth and counts
 * are bounded.
 */
#ifndef DQ_CONF_HANDLERS_YAML_H
#define DQ_CONF_HANDLERS_YAML_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

enum handlers_node_kind { HANDLERS_NODE_SCALAR, HANDLERS_NODE_LIST, HANDLERS_NODE_MAP };

struct handlers_node {
    enum handlers_node_kind kind;
    unsigned line, column;       /* 1-based */
    bool is_null;                /* a scalar that is empty, ~ or null, without quotes */
    char *text;                  /* SCALAR: as written; NULL for the others */
    struct handlers_node *items; /* LIST: its elements; MAP: key, value, key, value, ... */
    size_t count;                /* LIST: elements; MAP: pairs */
};

/* Reads text; `file` goes before each message. *ret_root is filled on success and is the caller's
 * to pass to handlers_yaml_done; an empty document is a scalar with is_null. ERR_CONFIG. */
int handlers_yaml_parse(const char *file, const char *text, size_t len,
                        struct handlers_node *ret_root, struct err *err)
    __attribute__((warn_unused_result));
/* frees what it holds; node itself stays the caller's */
void handlers_yaml_done(struct handlers_node *node);

#endif
