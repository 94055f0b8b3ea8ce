/*
 * rig.h - what the programs under measure need: a directory with a dq.ini and handlers of their
 * own, and dqd itself.
 *
 * The dq.ini names the files with secrets that the configured one names, and contains none.
 */
#ifndef DQ_BENCH_RIG_H
#define DQ_BENCH_RIG_H

#include "base/err.h"
#include "conf/conf.h"

#define RIG_BATCH 500 /* tasks a process of the batch handler takes */
/* Tags that the handlers serve. */
#define RIG_TAG_PROCESS "process"
#define RIG_TAG_BATCH "batch"
#define RIG_TAG_LATE "late"

struct rig {
    char *dir;                  /* removed by rig_done */
    char *ini, *handlers, *log; /* files in it; the log gets the output of the programs */
    char *dqd;                  /* the program beside this one, else in PATH; NULL: not found */
    int cores;                  /* that this process may use */
};

/* `conf` with the server and database of `mysql`, and handlers that do nothing. From now on no
 * descriptor of ours above 2 is inherited: the lock of the scratch database ends with our
 * connection, and nobody may keep that open. */
int rig_init(struct rig *rig, const struct conf *conf, const struct conf_mysql *mysql,
             struct err *err) __attribute__((warn_unused_result));
void rig_done(struct rig *rig); /* all zero is fine */

#endif
