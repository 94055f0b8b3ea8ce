/*
 * add_token.h - whether an INSERT was stored whose answer was lost.
 *
 * One of its rows carries a random token, by which the row is found again. All functions but
 * add_token_init block on the database.
 */
#ifndef DQ_STORE_ROW_ADD_TOKEN_H
#define DQ_STORE_ROW_ADD_TOKEN_H

#include "base/task.h"
#include "store/db/db.h"

struct add_token {
    unsigned char bytes[TASK_TOKEN_SIZE];
    uint64_t first_id; /* the row has this id or a greater one; UINT64_MAX: no row was sent */
    unsigned left;     /* db_connect_left before they were sent */
};
void add_token_init(const struct db *db, struct add_token *t);

/* To be called before each try to insert rows that get new ids: lowers first_id to the id after the
 * greatest one in the table. from: ` FROM ...` of what is to be asked with it, or "". 1, or 0 if
 * that has no row. */
int add_token_lower(struct db *db, struct add_token *t, const char *from, struct err *err)
    __attribute__((warn_unused_result));

/* On a new connection: 1 if a row with the token is stored, 0 if not. Reads `columns` of it, count
 * of them, and passes them to take (NULL: not called). Waits up to 5 s for a server that is being
 * restarted, or for the row if the connection leads to another server, and the one to which the row
 * was sent may store it yet. */
int add_token_find(struct db *db, const struct add_token *t, const char *columns, unsigned count,
                   void (*take)(const struct db_rows *r, void *arg), void *arg, struct err *err)
    __attribute__((warn_unused_result));

#endif
