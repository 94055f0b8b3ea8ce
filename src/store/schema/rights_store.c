/*
 * rights_store.c - see rights_store.h. Invariant: no statement is executed, whatever the account
 * may do.
 */
#include "store/schema/rights_store.h"

#include "store/row/sql.h"

#define ROLE(r) (1u << (r))
#define ALL (ROLE(RIGHTS_ROLE_COUNT) - 1)
#define WORKING (ROLE(RIGHTS_WORKER) | ROLE(RIGHTS_OPERATOR))
#define READING (WORKING | ROLE(RIGHTS_MONITOR))
#define NAMED 2 /* rights of a role that are listed by name */

const char *const rights_role_names[RIGHTS_ROLE_COUNT] = {
    [RIGHTS_PRODUCER] = "producer",
    [RIGHTS_WORKER] = "worker",
    [RIGHTS_OPERATOR] = "operator",
    [RIGHTS_MONITOR] = "monitor",
};

/* As sql/grants.sql.example gives them. */
static const struct right {
    const char *name, *statement;
    unsigned roles;
} rights[] = {
    /* clang-format off */
    {"SELECT on dq_meta", "SELECT value FROM dq_meta", ALL},
    {"SELECT on dq_task", "SELECT id, tag, status FROM dq_task", ALL},
    {"SELECT on bodies", "SELECT message_body, output FROM dq_task", WORKING},
    {"INSERT on dq_task", "INSERT INTO dq_task (attempt) VALUES (0)", ROLE(RIGHTS_PRODUCER) | ROLE(RIGHTS_OPERATOR)},
    {"INSERT on dq_task", "INSERT INTO dq_task (missed_slots) VALUES (0)", ROLE(RIGHTS_WORKER)},
    {"UPDATE on dq_task", "UPDATE dq_task SET version = 0 WHERE id = 0", WORKING},
    {"DELETE on dq_task", "DELETE FROM dq_task WHERE id = 0", WORKING},
    {"SELECT on dq_attempt", "SELECT output FROM dq_attempt", WORKING},
    {"INSERT on dq_attempt", "INSERT INTO dq_attempt (task_id) VALUES (0)", WORKING},
    {"UPDATE on dq_attempt", "UPDATE dq_attempt SET output = NULL WHERE task_id = 0", ROLE(RIGHTS_WORKER)},
    {"DELETE on dq_attempt", "DELETE FROM dq_attempt WHERE task_id = 0", WORKING},
    {"SELECT on dq_limit", "SELECT name FROM dq_limit", READING},
    {"INSERT on dq_limit", "INSERT INTO dq_limit (name) VALUES ('')", WORKING},
    {"UPDATE on dq_limit", "UPDATE dq_limit SET update_time = NULL WHERE name = ''", WORKING},
    {"SELECT on dq_poller", "SELECT host FROM dq_poller", READING},
    {"INSERT on dq_poller", "INSERT INTO dq_poller (host) VALUES ('')", ROLE(RIGHTS_WORKER)},
    {"UPDATE on dq_poller", "UPDATE dq_poller SET running = 0 WHERE token = ''", ROLE(RIGHTS_WORKER)},
    {"DELETE on dq_poller", "DELETE FROM dq_poller WHERE token = ''", ROLE(RIGHTS_WORKER)},
    {"SELECT on dq_minute", "SELECT tag FROM dq_minute", READING},
    {"INSERT on dq_minute", "INSERT INTO dq_minute (tag) VALUES ('')", ROLE(RIGHTS_WORKER)},
    {"UPDATE on dq_minute", "UPDATE dq_minute SET done = 0 WHERE tag = ''", ROLE(RIGHTS_WORKER)},
    {"DELETE on dq_minute", "DELETE FROM dq_minute WHERE tag = ''", ROLE(RIGHTS_WORKER)},
    {"SELECT on dq_handler", "SELECT pattern FROM dq_handler", READING},
    {"INSERT on dq_handler", "INSERT INTO dq_handler (pattern) VALUES ('')", ROLE(RIGHTS_WORKER)},
    {"DELETE on dq_handler", "DELETE FROM dq_handler WHERE pattern = ''", ROLE(RIGHTS_WORKER)},
    {"SELECT on dq_rest", "SELECT tag FROM dq_rest", READING},
    {"INSERT on dq_rest", "INSERT INTO dq_rest (tag) VALUES ('')", ROLE(RIGHTS_WORKER)},
    {"DELETE on dq_rest", "DELETE FROM dq_rest WHERE tag = ''", ROLE(RIGHTS_WORKER)},
    {"SELECT on dq_event", "SELECT verb FROM dq_event", READING},
    {"INSERT on dq_event", "INSERT INTO dq_event (verb) VALUES ('')", WORKING},
    {"DELETE on dq_event", "DELETE FROM dq_event WHERE token = ''", ROLE(RIGHTS_WORKER)},
    {"SELECT on dq_output", "SELECT seq FROM dq_output", WORKING},
    {"INSERT on dq_output", "INSERT INTO dq_output (seq) VALUES (0)", WORKING},
    {"UPDATE on dq_output", "UPDATE dq_output SET until_time = NULL WHERE task_id = 0", WORKING},
    {"DELETE on dq_output", "DELETE FROM dq_output WHERE task_id = 0", ROLE(RIGHTS_WORKER)},
    {"SELECT on dq_schedule", "SELECT name FROM dq_schedule", READING},
    {"INSERT on dq_schedule", "INSERT INTO dq_schedule (name) VALUES ('')", ROLE(RIGHTS_OPERATOR)},
    {"UPDATE on dq_schedule", "UPDATE dq_schedule SET missed = 0 WHERE name = ''", WORKING},
    {"DELETE on dq_schedule", "DELETE FROM dq_schedule WHERE name = ''", ROLE(RIGHTS_OPERATOR)},
    {"SELECT on dq_slot", "SELECT slot FROM dq_slot", READING},
    {"INSERT on dq_slot", "INSERT INTO dq_slot (name) VALUES ('')", WORKING},
    {"UPDATE on dq_slot", "UPDATE dq_slot SET missed = 0 WHERE name = ''", WORKING},
    {"DELETE on dq_slot", "DELETE FROM dq_slot WHERE name = ''", ROLE(RIGHTS_WORKER)},
    /* clang-format on */
};

/* 1, 0 if the account lacks a right, or an error. */
static int may(struct db *db, const char *statement, struct err *err)
{
    struct err why = {0};
    int rc = sql_first(db, DB_ANY_COLUMNS, NULL, NULL, &why, SQL_EXPLAIN "?", SQL_PART(statement));

    if (rc == ERR_DENIED)
        return 0;
    return rc < 0 ? err_set(err, rc, "%s", why.text) : 1;
}

int rights_store_missing(struct db *db, struct buf ret[RIGHTS_ROLE_COUNT], struct err *err)
{
    unsigned missing[RIGHTS_ROLE_COUNT] = {0};

    for (size_t i = 0; i < sizeof rights / sizeof rights[0]; i++) {
        int rc = may(db, rights[i].statement, err);
        if (rc < 0)
            return rc;
        for (int r = 0; r < RIGHTS_ROLE_COUNT && rc == 0; r++)
            if (rights[i].roles & ROLE(r) && ++missing[r] <= NAMED)
                buf_printf(&ret[r], "%s%s", ret[r].len ? ", " : "", rights[i].name);
    }
    for (int r = 0; r < RIGHTS_ROLE_COUNT; r++)
        if (missing[r] > NAMED)
            buf_printf(&ret[r], " and %u more", missing[r] - NAMED);
    return 0;
}
