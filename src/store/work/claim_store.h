/*
 * claim_store.h - claiming due tasks.
 *
 * All functions block on the database. None opens a transaction longer than its own two or three
 * statements.
 */
#ifndef DQ_STORE_WORK_CLAIM_STORE_H
#define DQ_STORE_WORK_CLAIM_STORE_H

#include "store/row/claim_ref.h"
#include "store/row/rows.h"
#include "store/work/claim_find.h"

/* Claims due tasks of one tag: reads candidates from the index, then claims them with one UPDATE by
 * (id, version). Of a paused tag, it finds none. With a global limit the two statements run in one
 * short transaction that locks the tag's row of dq_limit, so that the limit holds across hosts.
 *
 * Appends to `won` the tasks that are now ours: status running, version and attempt as after the
 * claim. Bodies up to 16 KiB are loaded. A longer one has body NULL (see body_store_load) and a
 * body_size that may be wrong; SIZE_MAX: unknown, or found to be wrong.
 *
 * Tasks that could not be claimed are added to *faults: locked (ERR_LOCKED), or refused by the
 * server. faults NULL: the first failure is returned. Returns ERR_LOCKED if the tag's row of
 * dq_limit is locked. After ERR_LOST, call claim_store_recover: what the broken UPDATE claimed is
 * ours, and would otherwise wait until its lease ends. */
int claim_store_claim(struct db *db, const struct claim_owner *owner, const struct claim_ask *ask,
                      struct task_array *won, struct claim_seen *ret, struct rows_faults *faults,
                      struct err *err) __attribute__((warn_unused_result));

/* Finds running tasks that have our token but are not among known[] (sorted): they were
 * claimed by an UPDATE whose answer was lost. Appends them to ret as claim_store_claim does. */
int claim_store_recover(struct db *db, const struct claim_owner *owner,
                        const struct claim_ref *known, size_t count, struct task_array *ret,
                        struct err *err) __attribute__((warn_unused_result));

/* Whether the session that has locked the row of a pending task is claiming it: 1, and *ret (heap)
 * is "web2/1234"; or 0. This can be seen in the row before its commit, without any privilege. */
int claim_store_claimer(struct db *db, uint64_t id, char **ret, struct err *err)
    __attribute__((warn_unused_result));

#endif
