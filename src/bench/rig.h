/*
 * rig.h - what is measured on: the scratch database, and for the programs a directory with a dq.ini
 * and handlers of their own, and dqd itself.
 *
 * The dq.ini names the files with secrets that the configured one names, and contains none.
 */
#ifndef DQ_BENCH_RIG_H
#define DQ_BENCH_RIG_H

#include "bench/figure.h"
#include "bench/scratch_db.h"

#define RIG_BATCH 500 /* tasks a process of the batch handler takes */
/* Tags that the handlers serve. */
#define RIG_TAG_PROCESS "process"
#define RIG_TAG_BATCH "batch"
#define RIG_TAG_LATE "late"

struct rig {
    const struct conf *conf;
    const struct scratch_db *scratch;
    char *dir;                  /* removed by rig_done */
    char *ini, *handlers, *log; /* files in it; the log gets the output of the programs */
    char *dqd;                  /* the program beside this one, else in PATH; NULL: not found */
    int cores;                  /* that this process may use */
    struct figure figures[FIGURE_COUNT];
};

/* A measure takes about `ms` and sets its figure, or leaves it as it was if nothing could be
 * counted. It may use figures that were measured before. */
typedef int rig_measure(struct rig *rig, int64_t ms, struct figure *ret, struct err *err);

/* `conf` with the server and database of `scratch`, and handlers that do nothing. From now on no
 * descriptor of ours above 2 is inherited: the lock of the scratch database ends with our
 * connection, and nobody may keep that open. */
int rig_init(struct rig *rig, const struct conf *conf, const struct scratch_db *scratch,
             struct err *err) __attribute__((warn_unused_result));
void rig_done(struct rig *rig); /* all zero is fine */

#endif
