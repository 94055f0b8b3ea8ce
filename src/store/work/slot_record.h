/*
 * slot_record.h - adds the tasks of slots, and records what became of each slot. All functions
 * block on the database.
 */
#ifndef DQ_STORE_WORK_SLOT_RECORD_H
#define DQ_STORE_WORK_SLOT_RECORD_H

#include "base/err.h"
#include "store/db/db.h"
#include "store/fleet/schedule_row.h"
#include "store/row/claim_ref.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct slot_record {
    const struct schedule *schedule;
    const struct slot_act *act;
};
struct slot_added {
    size_t tasks;
    uint64_t id; /* of the only task */
};
/* In a transaction: adds the tasks of these slots, and records all of them. error: of those that
 * were refused; or NULL. */
int slot_record_add(struct db *db, const struct slot_record *slots, size_t count, const char *error,
                    struct slot_added *ret, struct err *err) __attribute__((warn_unused_result));

/* Records how runs have ended, of some thousand slots at most. *ret_more: there may be more. */
int slot_record_harvest(struct db *db, bool *ret_more, struct err *err)
    __attribute__((warn_unused_result));

/* In a transaction: of these tasks, those that schedules added run again: how they end will be
 * recorded anew. */
int slot_record_reopen(struct db *db, const struct claim_ref *refs, size_t count, struct err *err)
    __attribute__((warn_unused_result));

/* Deletes up to `limit` slots that were decided more than 90 days ago. */
int slot_record_expire(struct db *db, size_t limit, size_t *ret_deleted, struct err *err)
    __attribute__((warn_unused_result));

#endif
