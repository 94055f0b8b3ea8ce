/*
 * routines.h - the procedures of producers in SQL (sql/routines.sql, built into the program).
 *
 * dq and dqd do not need them, so they are no part of the schema's version.
 */
#ifndef DQ_STORE_SCHEMA_ROUTINES_H
#define DQ_STORE_SCHEMA_ROUTINES_H

#include "store/row/task_new.h"

extern const char routines_script[]; /* the file's text, for the mysql client */

/* Creates the procedures that are missing, and replaces those of another text, and those that work
 * with the rights of an account that was dropped. *ret_made is their number. Blocks on the
 * database.
 *
 * MySQL forgets which accounts may execute a procedure that is replaced; hence those for producers
 * only call another, which has the text that may change. If one of them is replaced all the same,
 * the grants are repeated. Those that this account may not see or not give are appended to *lost,
 * one statement a line.
 *
 * ERR_DENIED: this account must not create or replace one. ERR_CONFIG: a procedure of such a name
 * is not dq's; nothing was changed. */
int routines_install(struct db *db, unsigned *ret_made, struct buf *lost, struct err *err)
    __attribute__((warn_unused_result));

/* How many of them are as they should be, not there, of another text, and not dq's. */
struct routines_state {
    unsigned current, missing, old, foreign;
    bool visible; /* this account would see them, if they were there */
};
int routines_check(struct db *db, struct routines_state *ret, struct err *err)
    __attribute__((warn_unused_result));

enum routines_action {
    ROUTINES_KEEP, /* it is as it should be */
    ROUTINES_CREATE,
    ROUTINES_REPLACE, /* another text, or the account with whose rights it works was dropped */
    ROUTINES_DENIED,  /* one of the latter two, but this account must not */
};
/* Calls fn for each procedure with what routines_install would do, and changes nothing. Which
 * rights a role has is not looked up: an account with one counts as having them. Blocks on the
 * database. ERR_CONFIG: as above. */
int routines_plan(struct db *db, void (*fn)(const char *name, enum routines_action a, void *arg),
                  void *arg, struct err *err) __attribute__((warn_unused_result));

/* Appends what a DBA runs with the mysql client: the script, which replaces what is there. On
 * MySQL, by a DROP before each procedure. */
void routines_put_script(struct buf *sql);

/* Appends `CALL dq_add...(...);`, which adds the task in any client, sql_mode and character set. */
void routines_put_call(struct buf *sql, const struct task_new *t, enum key_conflict on_conflict);

#endif
