/*
 * lock_store.h - which connections of the server have a transaction open, and so may hold locks.
 * One of XA that is prepared needs no connection, and outlives a restart of the server. All
 * functions block on the database and lock nothing.
 *
 * Others' transactions are shown to accounts with the right PROCESS only: ERR_DENIED. MySQL says
 * who has locked which row, to accounts that may read performance_schema.data_locks. MariaDB says
 * that only while somebody waits, and dq does not wait: there, without that right, and with
 * performance_schema = OFF, each transaction that has locked any row may be the one.
 */
#ifndef DQ_STORE_ASK_LOCK_STORE_H
#define DQ_STORE_ASK_LOCK_STORE_H

#include "store/db/db.h"

struct lock_holder {
    uint64_t connection; /* for KILL; 0: a transaction of XA that is prepared has none */
    char who[160];       /* root@web1; "": there is no such transaction */
    int64_t age_s;       /* of its transaction */
    uint64_t others;     /* younger ones that may be meant as well */
};

/* The connection whose transaction is the oldest. */
int lock_store_oldest(struct db *db, struct lock_holder *ret, struct err *err)
    __attribute__((warn_unused_result));
/* The same of those that have locked the row of a task or, if id is 0, rows of dq_limit, for a
 * second or longer. */
int lock_store_holder(struct db *db, uint64_t id, struct lock_holder *ret, struct err *err)
    __attribute__((warn_unused_result));
/* "connection 22, root@web1, open for 27m", on the heap; NULL: there is none. */
char *lock_store_describe(const struct lock_holder *h);
/* "KILL 22", or how to end what has no connection; on the heap. */
char *lock_store_remedy(const struct lock_holder *h);

#endif
