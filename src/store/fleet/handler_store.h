/*
 * handler_store.h - which handlers the live dqds have (dq_handler), and which tags rest at one of
 * them (dq_rest). All functions block on the database.
 *
 * A row of dq_poller names its handlers by a number, that of a handlers file as dqd has read it.
 * All dqds with the same file share the rows of that number, so a pass that runs every few seconds
 * finds them there.
 */
#ifndef DQ_STORE_FLEET_HANDLER_STORE_H
#define DQ_STORE_FLEET_HANDLER_STORE_H

#include "base/task.h"
#include "store/db/db.h"
#include "store/row/claim_ref.h"

struct handler_row {
    uint64_t handlers; /* the file that it belongs to */
    char *pattern;
    bool is_glob;
    uint32_t line;   /* of the file */
    uint64_t digest; /* of its settings: equal on two hosts if the handlers are */
    uint32_t batch, max_running, global_max_running, max_attempts;
    int64_t timeout_ms;
    char *retry; /* the waits of the retry list in ms, "5000,30000"; NULL: not known */
    char *limit; /* the name of the one that its tags share; NULL: each has its own */
};

/* Whether the handlers of that number are there, and whether any tag rests at any dqd. */
struct handler_seen {
    bool known, rests;
};
int handler_store_look(struct db *db, uint64_t handlers, struct handler_seen *ret, struct err *err)
    __attribute__((warn_unused_result));
/* Adds the handlers of that number, in their order, unless they are there, and names the number in
 * the row of the dqd: all of it or nothing. ERR_LOCKED if another dqd is about to add them. */
int handler_store_put(struct db *db, const struct claim_owner *owner, uint64_t handlers,
                      const struct handler_row *rows, size_t count, struct err *err)
    __attribute__((warn_unused_result));
/* Deletes what no row of dq_poller refers to. */
int handler_store_clean(struct db *db, struct err *err) __attribute__((warn_unused_result));
/* Lists the handlers of these numbers, by number and in the order of the file. Free *ret with
 * handler_store_free. */
int handler_store_list(struct db *db, const uint64_t *handlers, size_t n, struct handler_row **ret,
                       size_t *ret_count, struct err *err) __attribute__((warn_unused_result));
void handler_store_free(struct handler_row *rows, size_t count);

/* Why a dqd claims no tasks of a tag, or few. */
enum handler_reason {
    HANDLER_RESTS,   /* its handler cannot be started */
    HANDLER_REFUSED, /* the server refuses to find or change its tasks, or those of a handler
                        (`tag`) */
    HANDLER_SLOW,    /* changing one of its tasks takes long */
    HANDLER_KEPT     /* it does: what becomes of the processes of a handler (`tag`) that stay */
};
/* How the error of a HANDLER_KEPT begins. */
#define HANDLER_KEPT_TEXT "%u busy, %u idle"
struct handler_rest {
    int reason;                           /* enum handler_reason */
    unsigned char token[TASK_TOKEN_SIZE]; /* of the dqd; for handler_store_put_rests unused */
    bool has_token;                       /* it always has */
    char *tag, *error;
    int64_t for_ms; /* from now on; negative: it has ended */
};
/* Replaces the rests of a dqd. */
int handler_store_put_rests(struct db *db, const struct claim_owner *owner,
                            const struct handler_rest *rests, size_t count, struct err *err)
    __attribute__((warn_unused_result));
/* Lists the rests of all dqds, at most HANDLER_RESTS_MOST. Free *ret with
 * handler_store_free_rests. */
#define HANDLER_RESTS_MOST 10000
int handler_store_list_rests(struct db *db, struct handler_rest **ret, size_t *ret_count,
                             struct err *err) __attribute__((warn_unused_result));
void handler_store_free_rests(struct handler_rest *rests, size_t count);

#endif
