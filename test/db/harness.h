/*
 * harness.h - what the tests of the store share: a database that belongs to the test program, and a
 * proxy that loses answers.
 *
 * The server is named by DQ_CONFIG (test/lib/run-test starts one per program).
 */
#ifndef DQ_TEST_DB_HARNESS_H
#define DQ_TEST_DB_HARNESS_H

#include "base/mem.h"
#include "base/when.h"
#include "conf/conf.h"
#include "store/ask/task_add.h"
#include "store/ask/task_change.h"
#include "store/ask/task_get.h"
#include "store/ask/task_list.h"
#include "store/db/db.h"
#include "store/fleet/attempt_store.h"
#include "store/row/settlement.h"
#include "store/schema/schema_migrate.h"
#include "store/work/body_store.h"
#include "store/work/claim_store.h"
#include "store/work/lease_store.h"
#include "store/work/peek_store.h"
#include "store/work/retention_store.h"
#include "store/work/settle_store.h"
#include "store/work/slot_store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

/* Fails the test with err's text unless call returns 0 or more; its value. */
#define ok(call) harness_ok((call), #call, __FILE__, __LINE__)
int harness_ok(int rc, const char *what, const char *file, int line);
extern struct err err; /* hand &err to the calls under test */

/* cmocka fixtures: the group's makes the schema, each test's empties the tables. */
int harness_group(void **state);
int harness_group_end(void **state);
int harness_setup(void **state);

extern const struct conf_mysql *harness_conf;
extern struct db *db;        /* a connection for everything */
struct db *harness_db(void); /* another one, connected; db_free it */

/* Statements of the tests themselves. */
/* matched rows */
uint64_t run(struct db *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int exec(struct db *d, const char *text); /* it may fail; what db_exec returns */
/* what an ordinary account may not */
void as_root(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
int64_t number(struct db *d, const char *fmt, ...)
    __attribute__((format(printf, 2, 3))); /* first cell; INT64_MIN: no row or NULL */
void assert_one(const char *what); /* 1 is what SELECT COUNT(*) FROM what counts */
/* A derived table with the numbers 1 to n in its column seq, valid until the next call: only
 * MariaDB has tables of numbers, and the limits of recursion differ. */
const char *numbers(unsigned n);
/* The sum of the session's counters of which "variable_name WHERE" is true. */
int64_t session_status(struct db *d, const char *where);
/* How many index entries and rows the session has read so far: the sum of Handler_read_%. */
int64_t reads(struct db *d);

/* A task as most tests want it: due delay_ms from now (negative: overdue). */
uint64_t add(const char *tag, const char *key, int64_t delay_ms);
/* An hourly schedule, with or without more settings, whose next slot was `ago` (SQL) ago. */
void hourly(const char *name, const char *ago, const char *more);
struct slot_store_done decide(struct db *d); /* the slots that are due */
struct claim_owner owner(unsigned char seed);
/* Claims up to limit tasks of the tag, lease a minute; the list is the caller's. */
struct task_array claim(struct db *d, const struct claim_owner *o, const char *tag, size_t limit);

/* Up to 100 tasks of the tag t, by the only dqd. */
extern const struct claim_ask plain_ask;

/* Adds n tasks that are due, and claims them. */
struct task_array claimed(const struct claim_owner *o, int n);
/* The result of an attempt, with status 0 if it succeeded and 1 otherwise. */
struct settlement result(const struct task *t, enum task_event event, enum task_outcome outcome);

/* Lists the tasks that match, and changes or deletes them, as dq does. */
int change_all(struct db *d, const struct task_filter *f, const struct task_change *c,
               struct task_changed *ret, struct rows_faults *faults);
int delete_all(struct db *d, const struct task_filter *f, struct task_changed *ret,
               struct rows_faults *faults);

/* A connection through a proxy. The next statement that contains `pattern` is passed on, answered
 * by the server, and its answer thrown away with the connection; deliver false: it is thrown away
 * itself. The proxy then works on; with proxy_cut_all every such statement meets the same. */
struct proxy;
struct proxy *proxy_new(void);
struct db *proxy_db(struct proxy *p); /* its handle, not yet connected; freed with the proxy */
void proxy_cut(struct proxy *p, const char *pattern, bool deliver);
void proxy_cut_all(struct proxy *p, const char *pattern, bool deliver);
unsigned proxy_cuts(struct proxy *p); /* how many it has made */
void proxy_free(struct proxy *p);

#endif
