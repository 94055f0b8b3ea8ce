/*
 * slot_store.h - decides the slots of schedules that are due. Blocks on the database.
 */
#ifndef DQ_STORE_WORK_SLOT_STORE_H
#define DQ_STORE_WORK_SLOT_STORE_H

#include "base/err.h"
#include "store/db/db.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Schedules that could not be decided here: the row is locked (ERR_LOCKED), or the timetable cannot
 * be read, because this host lacks the time zone, for example (ERR_DATA). */
struct slot_store_fault {
    size_t count;   /* and those that were refused */
    char name[520]; /* of the last one */
    struct err err;
};

struct slot_store_done {
    size_t decided;  /* schedules */
    size_t added;    /* tasks */
    size_t refused;  /* schedules whose task the server would not store; the slot is recorded */
    bool more;       /* other schedules may be due */
    int64_t look_at; /* when the next decision can be made; TASK_TIME_NONE: there is none */
    struct slot_store_fault fault;
};
/* Decides the slots that are due, of a limited number of schedules: for each, the next slot is
 * moved, its tasks are added and its slots recorded in one transaction, which others cannot have
 * made, too (version). Many schedules share one; if the server refuses that, the one at fault is
 * found, and its slot recorded as refused. ERR_LOST: whether the last one was made shows when this
 * is called again. */
int slot_store_decide(struct db *db, struct slot_store_done *ret, struct err *err)
    __attribute__((warn_unused_result));

/* Computes the next slots that were computed with an older time zone database than that of this
 * host, of a limited number of schedules, and decides those that are past by it. *ret_more: there
 * may be others. */
int slot_store_renew(struct db *db, bool *ret_more, struct err *err)
    __attribute__((warn_unused_result));

#endif
