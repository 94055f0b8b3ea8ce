/*
 * statement.c - how fast the server is, measured with the functions that dq and dqd use.
 */
#include "bench/statement.h"

#include "base/interrupt.h"
#include "base/mem.h"
#include "base/when.h"
#include "store/ask/task_add.h"
#include "store/db/db_connect.h"
#include "store/row/claim_ref.h"
#include "store/row/task_array.h"
#include "store/schema/scratch_store.h"
#include "store/work/claim_store.h"
#include "store/work/peek_store.h"
#include "store/work/settle_store.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define BODY_SIZE 100
#define CHUNKS_MAX 25 /* about 30 MB of table */
#define ADDS_MAX 50000
#define CONNECTS_MAX 500 /* each leaves a port in TIME_WAIT */
#define HOUR_MS INT64_C(3600000)

static int64_t end_after(int64_t ms)
{
    return when_steady_us() + ms * 1000;
}

int statement_round_trip(struct rig *rig, int64_t ms, struct figure *ret, struct err *err)
{
    struct db *db = rig->scratch->db;
    struct figure_times t = {0};
    int64_t end_us = end_after(ms);
    int rc = 0;

    while (rc == 0 && figure_goes_on(t.count, end_us)) {
        int64_t start = when_steady_us();
        rc = scratch_store_ping(db, err);
        figure_times_add(&t, when_steady_us() - start);
    }
    figure_set_times(ret, &t);
    return rc;
}

int statement_commit(struct rig *rig, int64_t ms, struct figure *ret, struct err *err)
{
    struct db *db = rig->scratch->db;
    struct figure_times t = {0};
    int64_t end_us = end_after(ms);
    int rc = scratch_store_commit(db, 0, err);

    while (rc == 0 && figure_goes_on(t.count, end_us)) {
        int64_t start = when_steady_us();
        rc = scratch_store_commit(db, (unsigned)t.count + 1, err);
        figure_times_add(&t, when_steady_us() - start);
    }
    figure_set_times(ret, &t);
    return rc;
}

int statement_connect(struct rig *rig, int64_t ms, struct figure *ret, struct err *err)
{
    struct figure_times t = {0};
    int64_t end_us = end_after(ms);
    int rc = 0;

    while (rc == 0 && t.count < CONNECTS_MAX && figure_goes_on(t.count, end_us)) {
        struct db *db = db_new(&rig->scratch->conf);
        int64_t start = when_steady_us();
        rc = db_connect(db, err);
        figure_times_add(&t, when_steady_us() - start);
        db_free(db);
    }
    figure_set_times(ret, &t);
    return rc;
}

static struct task_new new_task(const char *tag, int64_t delay_ms)
{
    static char body[BODY_SIZE];

    memset(body, 'x', sizeof body);
    return (struct task_new){.tag = tag,
                             .body = body,
                             .body_size = sizeof body,
                             .expected_at = TASK_TIME_NONE,
                             .delay_ms = delay_ms};
}

int statement_add(struct rig *rig, int64_t ms, struct figure *ret, struct err *err)
{
    struct db *db = rig->scratch->db;
    struct task_new task = new_task("add", HOUR_MS);
    struct task_added added;
    int64_t start = when_steady_us(), end_us = end_after(ms);
    size_t count = 0;
    int rc = 0;

    while (rc >= 0 && count < ADDS_MAX && figure_goes_on(count, end_us)) {
        rc = task_add(db, &task, KEY_ERROR, &added, err);
        count++;
    }
    figure_set_rate(ret, (double)count, when_steady_us() - start);
    return rc < 0 ? rc : 0;
}

int statement_fill(struct db *db, const char *tag, size_t n, int64_t delay_ms, int64_t spread_ms,
                   int64_t *ret_us, struct err *err)
{
    MEM_LOCAL struct task_new *tasks = mem_zero(TASK_CHUNK_ROWS, sizeof *tasks);
    int64_t start = when_steady_us();
    size_t kept, bad;
    int rc = 0;

    for (size_t at = 0; rc == 0 && at < n && !interrupt_asked();) {
        size_t count = 0;
        for (; count < TASK_CHUNK_ROWS && at < n; count++, at++)
            tasks[count] = new_task(tag, delay_ms + spread_ms * (int64_t)at / (int64_t)n);
        rc = task_add_many(db, tasks, count, KEY_ERROR, &kept, &bad, err);
    }
    if (ret_us)
        *ret_us = when_steady_us() - start;
    return rc;
}

int statement_add_bulk(struct rig *rig, int64_t ms, struct figure *ret, struct err *err)
{
    struct db *db = rig->scratch->db;
    int64_t end_us = end_after(ms), us = 0;
    size_t chunks = 0;
    int rc = 0;

    while (rc == 0 && chunks < CHUNKS_MAX && figure_goes_on(chunks, end_us)) {
        int64_t took;
        rc = statement_fill(db, "claim", TASK_CHUNK_ROWS, 0, 0, &took, err);
        us += took;
        chunks++;
    }
    figure_set_rate(ret, (double)(chunks * TASK_CHUNK_ROWS), us);
    return rc;
}

int statement_peek(struct rig *rig, int64_t ms, struct figure *ret, struct err *err)
{
    struct db *db = rig->scratch->db;
    struct figure_times t = {0};
    LOCAL_BY(peek_store_done) struct peek peek = {0};
    int rc = scratch_store_analyze(db, err);
    int64_t end_us = end_after(ms);

    while (rc == 0 && figure_goes_on(t.count, end_us)) {
        int64_t start = when_steady_us();
        rc = peek_store_all(db, 0, &peek, err);
        figure_times_add(&t, when_steady_us() - start);
    }
    figure_set_times(ret, &t);
    return rc;
}

static int settle(const struct rig *rig, const struct claim_owner *owner,
                  const struct task_array *won, int64_t *us, struct err *err)
{
    bool history = rig->conf->dqd.history == CONF_HISTORY_ALL;
    struct settlement s[STATEMENT_CLAIM_ROWS];
    bool applied[STATEMENT_CLAIM_ROWS];

    for (size_t i = 0; i < won->count; i++)
        s[i] = (struct settlement){.id = won->items[i].id,
                                   .version = won->items[i].version,
                                   .event = TASK_SUCCEED,
                                   .outcome = OUTCOME_DONE,
                                   .start_at = won->items[i].expected_at + (int64_t)i,
                                   .finish_at = won->items[i].expected_at + (int64_t)i + 1};
    int64_t start = when_steady_us();
    int rc = settle_store_settle(rig->scratch->db, owner, s, won->count, history, false, applied,
                                 NULL, err);
    *us += when_steady_us() - start;
    return rc;
}

/* Claims and settles in turns. */
int statement_claim(struct rig *rig, int64_t ms, struct figure *ret, struct err *err)
{
    struct db *db = rig->scratch->db;
    struct claim_owner owner = {.host = "dq bench", .pid = (uint32_t)getpid()};
    const struct claim_ask ask = {.tag = "claim",
                                  .limit = STATEMENT_CLAIM_ROWS,
                                  .shares = 1,
                                  .max_attempts = 1,
                                  .lease_ms = HOUR_MS};
    int64_t end_us = end_after(ms), claim_us = 0, settle_us = 0;
    size_t count = 0;
    struct claim_seen saw = {.found = STATEMENT_CLAIM_ROWS};
    int rc = 0;

    if (getrandom(owner.token, sizeof owner.token, 0) != sizeof owner.token)
        return err_set(err, ERR_SYSTEM, "cannot get random bytes: %s", strerror(errno));
    for (size_t rounds = 0;
         rc == 0 && saw.found == STATEMENT_CLAIM_ROWS && figure_goes_on(rounds, end_us); rounds++) {
        LOCAL_BY(task_array_done) struct task_array won = {0};
        int64_t start = when_steady_us();
        rc = claim_store_claim(db, &owner, &ask, &won, &saw, NULL, err);
        claim_us += when_steady_us() - start;
        if (rc == 0 && won.count)
            rc = settle(rig, &owner, &won, &settle_us, err);
        count += won.count;
    }
    figure_set_rate(ret, (double)count, claim_us);
    figure_set_rate(&rig->figures[FIGURE_SETTLE], (double)count, settle_us);
    return rc;
}
