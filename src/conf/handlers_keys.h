/*
 * handlers_keys.h - the keys of a handler and of `defaults`. Private to src/conf.
 */
#ifndef DQ_CONF_HANDLERS_KEYS_H
#define DQ_CONF_HANDLERS_KEYS_H

#include "conf/handlers.h"
#include "conf/handlers_value.h"

#include <stdbool.h>

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
