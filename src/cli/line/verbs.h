/*
 * verbs.h - the verbs of dq. Each comes from a cmd_VERB.c.
 */
#ifndef DQ_CLI_LINE_VERBS_H
#define DQ_CLI_LINE_VERBS_H

#include "cli/line/cmd.h"

/* All of them, in the order of `dq help`: of use, within each group. */
/* clang-format off */
#define VERBS(X) \
    X(list) \
    X(show) \
    X(why) \
    X(errors) \
    X(tags) \
    X(stats) \
    X(top) \
    X(events) \
    X(forecast) \
    X(check) \
    X(pollers) \
    X(add) \
    X(cancel) \
    X(retry) \
    X(reschedule) \
    X(run_now) \
    X(pause) \
    X(resume) \
    X(limit) \
    X(schedule) \
    X(quiet) \
    X(unquiet) \
    X(delete) \
    X(init) \
    X(doctor) \
    X(bench) \
    X(purge) \
    X(export) \
    X(import) \
    X(rehearse) \
    X(logs) \
    X(wait) \
    X(help) \
    X(completion) \
    X(version)
/* The commands of dq schedule. */
#define VERBS_SCHEDULE(X) \
    X(schedule_list) \
    X(schedule_show) \
    X(schedule_next) \
    X(schedule_set) \
    X(schedule_pause) \
    X(schedule_resume) \
    X(schedule_run_now) \
    X(schedule_backfill) \
    X(schedule_delete) \
    X(schedule_apply) \
    X(schedule_export) \
    X(schedule_import_crontab)
/* clang-format on */
#define VERBS_DECLARE(name) extern const struct cmd cmd_##name;
VERBS(VERBS_DECLARE)
VERBS_SCHEDULE(VERBS_DECLARE)

extern const struct cmd *const verbs_table[]; /* NULL-terminated, by group */
/* Finds a verb by name or alias. If there is none: NULL and ERR_USAGE, with the nearest name. */
const struct cmd *verbs_find(const char *name, struct err *err);

#endif
