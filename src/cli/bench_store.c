/*
 * bench_store.c - what the server does in a second, asked by the very functions that dq and dqd use.
 */
#include "cli/bench.h"

#include "base/mem.h"
#include "base/when.h"
#include "store/claim_store.h"
#include "store/task_store.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define BODY_SIZE 100
#define CHUNK 1000
#define CHUNKS_MAX 100 /* some 30 MB of table */
#define ADDS_MAX 50000
#define CONNECTS_MAX 500 /* each leaves a port in TIME_WAIT */
#define STEP 500
#define HOUR_MS INT64_C(3600000)

static int64_t end_after(int64_t ms)
{
    return when_steady_us() + ms * 1000;
}

int bench_round_trip(struct bench *b, int64_t ms, struct err *err)
{
    struct bench_times t = {0};
    int64_t end_us = end_after(ms);
    int rc = 0;

    while (rc == 0 && bench_more(t.count, end_us)) {
        int64_t start = when_steady_us();
        rc = scratch_store_ping(b->db, err);
        bench_times_add(&t, when_steady_us() - start);
    }
    bench_set_times(b, BENCH_ROUND_TRIP, &t);
    return rc;
}

int bench_commit(struct bench *b, int64_t ms, struct err *err)
{
    struct bench_times t = {0};
    int64_t end_us = end_after(ms);
    int rc = scratch_store_commit(b->db, 0, err);

    while (rc == 0 && bench_more(t.count, end_us)) {
        int64_t start = when_steady_us();
        rc = scratch_store_commit(b->db, (unsigned)t.count + 1, err);
        bench_times_add(&t, when_steady_us() - start);
    }
    bench_set_times(b, BENCH_COMMIT, &t);
    return rc;
}

int bench_connect(struct bench *b, int64_t ms, struct err *err)
{
    struct bench_times t = {0};
    int64_t end_us = end_after(ms);
    int rc = 0;

    while (rc == 0 && t.count < CONNECTS_MAX && bench_more(t.count, end_us)) {
        struct db *db = db_new(&b->conf);
        int64_t start = when_steady_us();
        db_set_brief(db);
        rc = db_connect(db, err);
        bench_times_add(&t, when_steady_us() - start);
        db_free(db);
    }
    bench_set_times(b, BENCH_CONNECT, &t);
    return rc;
}

static struct task_new new_task(const char *tag, int64_t delay_ms)
{
    static char body[BODY_SIZE];

    memset(body, 'x', sizeof body);
    return (struct task_new){
        .tag = tag, .body = body, .body_size = sizeof body, .expected_at = TASK_TIME_NONE, .delay_ms = delay_ms};
}

int bench_add(struct bench *b, int64_t ms, struct err *err)
{
    struct task_new task = new_task("add", HOUR_MS);
    struct task_added added;
    int64_t start = when_steady_us(), end_us = end_after(ms);
    size_t count = 0;
    int rc = 0;

    while (rc >= 0 && count < ADDS_MAX && bench_more(count, end_us)) {
        rc = task_store_add(b->db, &task, KEY_ERROR, &added, err);
        count++;
    }
    bench_set_rate(b, BENCH_ADD, (double)count, when_steady_us() - start);
    return rc < 0 ? rc : 0;
}

int bench_fill(struct bench *b, const char *tag, size_t n, int64_t delay_ms, int64_t spread_ms, int64_t *ret_us, struct err *err)
{
    struct task_new *tasks = mem_zero(CHUNK, sizeof *tasks);
    int64_t start = when_steady_us();
    size_t kept, bad;
    int rc = 0;

    for (size_t at = 0; rc == 0 && at < n && !bench_stopped();) {
        size_t count = 0;
        for (; count < CHUNK && at < n; count++, at++)
            tasks[count] = new_task(tag, delay_ms + spread_ms * (int64_t)at / (int64_t)n);
        rc = task_store_add_many(b->db, tasks, count, KEY_ERROR, &kept, &bad, err);
    }
    if (ret_us)
        *ret_us = when_steady_us() - start;
    free(tasks);
    return rc;
}

int bench_add_bulk(struct bench *b, int64_t ms, struct err *err)
{
    int64_t end_us = end_after(ms), us = 0;
    size_t chunks = 0;
    int rc = 0;

    while (rc == 0 && chunks < CHUNKS_MAX && bench_more(chunks, end_us)) {
        int64_t took;
        rc = bench_fill(b, "claim", CHUNK, 0, 0, &took, err);
        us += took;
        chunks++;
    }
    bench_set_rate(b, BENCH_ADD_BULK, (double)(chunks * CHUNK), us);
    return rc;
}

int bench_peek(struct bench *b, int64_t ms, struct err *err)
{
    struct bench_times t = {0};
    struct claim_peek peek = {0};
    int rc = scratch_store_analyze(b->db, err);
    int64_t end_us = end_after(ms);

    while (rc == 0 && bench_more(t.count, end_us)) {
        int64_t start = when_steady_us();
        rc = claim_store_peek(b->db, &peek, err);
        bench_times_add(&t, when_steady_us() - start);
    }
    claim_peek_done(&peek);
    bench_set_times(b, BENCH_PEEK, &t);
    return rc;
}

static int settle(struct bench *b, const struct claim_owner *owner, const struct task_list *won, int64_t *us, struct err *err)
{
    struct settlement s[STEP];
    bool applied[STEP];

    for (size_t i = 0; i < won->count; i++)
        s[i] = (struct settlement){.id = won->items[i].id,
                                   .version = won->items[i].version,
                                   .event = TASK_SUCCEED,
                                   .outcome = OUTCOME_DONE,
                                   .start_at = won->items[i].expected_at + (int64_t)i,
                                   .finish_at = won->items[i].expected_at + (int64_t)i + 1};
    int64_t start = when_steady_us();
    int rc = claim_store_settle(b->db, owner, s, won->count, b->c->conf->dqd.history == CONF_HISTORY_ALL, applied, err);
    *us += when_steady_us() - start;
    return rc;
}

/* What bench_add_bulk has left, claimed and settled in turns until it or the time is used up. */
int bench_claim(struct bench *b, int64_t ms, struct err *err)
{
    struct claim_owner owner = {.host = "dq bench", .pid = (uint32_t)getpid()};
    const struct claim_ask ask = {.tag = "claim", .limit = STEP, .shares = 1, .max_attempts = 1, .lease_ms = HOUR_MS};
    int64_t end_us = end_after(ms), claim_us = 0, settle_us = 0;
    size_t count = 0, seen = STEP, lost;
    int rc = 0;

    if (getrandom(owner.token, sizeof owner.token, 0) != sizeof owner.token)
        return err_set(err, ERR_SYSTEM, "no random bytes");
    for (size_t rounds = 0; rc == 0 && seen == STEP && bench_more(rounds, end_us); rounds++) {
        struct task_list won = {0};
        int64_t start = when_steady_us();
        rc = claim_store_claim(b->db, &owner, &ask, &won, &seen, &lost, err);
        claim_us += when_steady_us() - start;
        if (rc == 0 && won.count)
            rc = settle(b, &owner, &won, &settle_us, err);
        count += won.count;
        task_list_done(&won);
    }
    bench_set_rate(b, BENCH_CLAIM, (double)count, claim_us);
    bench_set_rate(b, BENCH_SETTLE, (double)count, settle_us);
    return rc;
}
