/*
 * complete_store.h - what the last word of a command line may become: tags, ids and keys that are
 * in the database.
 */
#ifndef DQ_STORE_ASK_COMPLETE_STORE_H
#define DQ_STORE_ASK_COMPLETE_STORE_H

#include "store/db/db.h"

enum complete_store_kind {
    COMPLETE_STORE_TAGS, /* of tasks, and those that a live dqd serves by name */
    COMPLETE_STORE_IDS,  /* of the newest tasks, newest first */
    COMPLETE_STORE_KEYS, /* of pending and running tasks */
};
/* Calls each for the words of a kind that begin with prefix, which is plain text. help is NULL or
 * what a person should know about the word. The work is bounded, however many tasks there are, so
 * words may be missing. Blocks on the database. */
int complete_store_list(struct db *db, enum complete_store_kind kind, const char *prefix,
                        void (*each)(const char *word, const char *help, void *arg), void *arg,
                        struct err *err) __attribute__((warn_unused_result));

#endif
