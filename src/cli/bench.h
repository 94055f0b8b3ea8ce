/*
 * bench.h - `dq bench`: the parts that measure, and what they leave for the one that judges.
 *
 * Each measure gets a share of the time and sets one or two figures. It ends early when bench_stopped(); what is on its way then is
 * worth nothing, as the verb fails.
 */
#ifndef DQ_CLI_BENCH_H
#define DQ_CLI_BENCH_H

#include "cli/cmd.h"
#include "store/scratch_store.h"

enum bench_measure {
    BENCH_ROUND_TRIP,
    BENCH_COMMIT,
    BENCH_CONNECT,
    BENCH_ADD_COMMAND,
    BENCH_ADD,
    BENCH_ADD_BULK,
    BENCH_PEEK,
    BENCH_CLAIM,
    BENCH_SETTLE,
    BENCH_SPAWN,
    BENCH_SPAWN_PARALLEL,
    BENCH_RUN,
    BENCH_RUN_BATCH,
    BENCH_LATENESS,
    BENCH_MEASURE_COUNT
};

struct bench_figure {
    bool known, has_p99;
    double value, p99; /* ms (value: the median) or per second */
    char why[256];     /* where it is not known: why; else how it was measured, where that differs from run to run */
};

struct bench {
    struct cmd_context *c;
    struct conf_mysql conf; /* the configured server with the scratch database; strings are borrowed */
    struct db *db;          /* connected to it */
    struct scratch_server server;
    struct bench_figure figures[BENCH_MEASURE_COUNT];
    int cores; /* that this process may use */
    char *dir; /* a directory of our own, with dq.ini and handlers.yaml for what is started */
    char *dqd; /* the program; NULL: not found */
};

/* The first SIGINT, SIGTERM or SIGHUP is noted, a second one ends the program. Whether one came. */
void bench_catch_signals(void);
bool bench_stopped(void);

/* Times of one operation, in microseconds. All zero: none. */
struct bench_times {
    int64_t *us;
    size_t count, cap;
};
void bench_times_add(struct bench_times *t, int64_t us);
/* Median and 99th percentile become the figure; frees the times. Without any the figure stays unknown. */
void bench_set_times(struct bench *b, enum bench_measure m, struct bench_times *t);
void bench_set_rate(struct bench *b, enum bench_measure m, double count, int64_t us);
void bench_set_unknown(struct bench *b, enum bench_measure m, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Whether to go on: `done` of a thing are done, and end_us is the steady time when its share of the time is over. At least a few
 * are done, however slow they are. */
bool bench_more(size_t done, int64_t end_us);

/* n tasks of a tag in statements of 1,000, due evenly spread over `spread_ms`, the first after delay_ms. *ret_us, where not NULL:
 * how long that took. */
int bench_fill(struct bench *b, const char *tag, size_t n, int64_t delay_ms, int64_t spread_ms, int64_t *ret_us, struct err *err)
    __attribute__((warn_unused_result));

/* bench_store.c: by the functions that dq and dqd use. */
int bench_round_trip(struct bench *b, int64_t ms, struct err *err) __attribute__((warn_unused_result));
int bench_commit(struct bench *b, int64_t ms, struct err *err) __attribute__((warn_unused_result));
int bench_connect(struct bench *b, int64_t ms, struct err *err) __attribute__((warn_unused_result));
int bench_add(struct bench *b, int64_t ms, struct err *err) __attribute__((warn_unused_result));
int bench_add_bulk(struct bench *b, int64_t ms, struct err *err) __attribute__((warn_unused_result));
int bench_peek(struct bench *b, int64_t ms, struct err *err) __attribute__((warn_unused_result));
int bench_claim(struct bench *b, int64_t ms, struct err *err) __attribute__((warn_unused_result)); /* and BENCH_SETTLE */

/* bench_process.c: programs. They get no descriptor of ours but 0 to 2, and no secret: their dq.ini names the files of the
 * configured one. */
int bench_process_init(struct bench *b, struct err *err) __attribute__((warn_unused_result)); /* makes dir, finds dqd */
void bench_process_done(struct bench *b);                                                     /* removes dir */
int bench_spawn(struct bench *b, int64_t ms, struct err *err) __attribute__((warn_unused_result));
int bench_spawn_parallel(struct bench *b, int64_t ms, struct err *err) __attribute__((warn_unused_result));
/* Starts argv[0] with its output in a file of dir, /dev/null where that is NULL. */
int bench_process_start(struct bench *b, const char *const *argv, const char *output, pid_t *ret, struct err *err)
    __attribute__((warn_unused_result));
/* Waits for its end: its status as waitpid(2) gives it. After timeout_ms, or when bench_stopped(), it gets TERM, and KILL if that
 * does not help. */
int bench_process_wait(pid_t pid, int64_t timeout_ms);

/* bench_dqd.c: the real dq and dqd. */
int bench_add_command(struct bench *b, int64_t ms, struct err *err) __attribute__((warn_unused_result));
int bench_run(struct bench *b, int64_t ms, struct err *err) __attribute__((warn_unused_result));
int bench_run_batch(struct bench *b, int64_t ms, struct err *err) __attribute__((warn_unused_result));
int bench_lateness(struct bench *b, int64_t ms, struct err *err) __attribute__((warn_unused_result));

/* A line of the result: a measure, what is carried, or a brake. The name of a brake is that of the carry or measure it limits. */
struct bench_row {
    const char *kind, *name, *unit;
    bool known, has_p99, warn;
    double value, p99;
    char setting[64], now[64], about[256];
};
struct bench_rows {
    struct bench_row *items; /* heap memory */
    size_t count;
};
/* bench_verdict.c: figures, what they can carry, and what limits that. */
struct bench_rows bench_judge(const struct bench *b);
/* bench_put.c: prints them. */
int bench_put(const struct bench *b, const struct bench_rows *rows, struct err *err) __attribute__((warn_unused_result));

#endif
