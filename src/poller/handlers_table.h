/*
 * handlers_table.h - a handlers table that stays until the last job started from it has ended.
 */
#ifndef DQ_POLLER_HANDLERS_TABLE_H
#define DQ_POLLER_HANDLERS_TABLE_H

#include "conf/handlers.h"

#include <stdint.h>

/* Counted by its users: tags.c for the current table, and each job. */
struct handlers_table {
    struct handlers *handlers;
    uint64_t number; /* by which dq_poller and dq_handler know them; 0: there are none */
    unsigned users;
    uint32_t *elsewhere; /* by handler: what tags_share_elsewhere has counted */
};

/* Takes the handlers over. The caller is the first user. */
struct handlers_table *handlers_table_new(struct handlers *handlers);
/* One user more; returns the table. */
struct handlers_table *handlers_table_use(struct handlers_table *t);
/* One user less; the last one frees it. */
void handlers_table_release(struct handlers_table *t);

#endif
