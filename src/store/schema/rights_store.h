/*
 * rights_store.h - what the account of a connection may do, compared with the roles of
 * sql/grants.sql.example.
 */
#ifndef DQ_STORE_SCHEMA_RIGHTS_STORE_H
#define DQ_STORE_SCHEMA_RIGHTS_STORE_H

#include "store/db/db.h"

enum rights_role {
    RIGHTS_PRODUCER, /* dq add */
    RIGHTS_WORKER,   /* dqd */
    RIGHTS_OPERATOR, /* dq */
    RIGHTS_MONITOR,  /* reading, no bodies */
    RIGHTS_ROLE_COUNT
};
extern const char *const rights_role_names[RIGHTS_ROLE_COUNT];

/* Appends to ret[role] what the account lacks for that role, at most two rights by name; nothing if
 * it has all. Blocks on the database and changes nothing: statements that would need the rights are
 * only explained. */
int rights_store_missing(struct db *db, struct buf ret[RIGHTS_ROLE_COUNT], struct err *err)
    __attribute__((warn_unused_result));

#endif
