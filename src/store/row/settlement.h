/*
 * settlement.h - the end of an attempt, cut to what the server takes in a packet.
 */
#ifndef DQ_STORE_ROW_SETTLEMENT_H
#define DQ_STORE_ROW_SETTLEMENT_H

#include "base/task.h"
#include "store/db/db.h"

/* What a failure says about what the handler calls. */
enum settlement_fault {
    FAULT_COUNTS,
    FAULT_SHARED, /* another task that ended with the same process counts for it */
    FAULT_EXCUSED /* it is the fault of its task or of its dqd */
};
struct settlement {
    uint64_t id, version; /* as claimed */
    size_t body_size;     /* of the task, see rows_take */
    /* TASK_SUCCEED, TASK_TRY_LATER, TASK_SNOOZE, TASK_GIVE_UP, TASK_GIVE_BACK, TASK_TAKE_BACK */
    enum task_event event;
    enum task_outcome outcome;
    /* TASK_TRY_LATER, TASK_SNOOZE: due this long after the statement; otherwise the expected time
     * stays */
    int64_t retry_delay_ms;
    int64_t apart_ms; /* see retry_apart_ms; 0: the delay is exact */
    /* by the database's clock as the poller knows it; TASK_TIME_NONE: never started */
    int64_t start_at, finish_at;
    enum settlement_fault fault;
    int exit_code, signal; /* -1, 0: none */
    const char *error;     /* NULL: none */
    const void *output;    /* the end of it; NULL: none */
    size_t output_size;
    const char *on_failed; /* if it fails: the tag of a task to add (follow_up.h); NULL: none */
};

/* Least of max_allowed_packet for dqd: 5,000 ids with as many versions take 375 KB. */
#define SETTLEMENT_PACKET_LEAST ((size_t)512 << 10)
/* The server's max_allowed_packet. ERR_CONFIG, which names the setting, if it is smaller than the
 * statements that dqd has to send. */
int settlement_max_packet(struct db *db, size_t *ret_bytes, struct err *err)
    __attribute__((warn_unused_result));

/* Copies s, cutting the beginning off each output longer than `most` bytes; a line in its place
 * says so. NULL if no output is that long. Free it with settlement_free_fit (NULL is fine). Private
 * to src/store. */
struct settlement *settlement_fit(const struct settlement *s, size_t count, size_t most)
    __attribute__((warn_unused_result));
void settlement_free_fit(struct settlement *fit, const struct settlement *s, size_t count);

#endif
