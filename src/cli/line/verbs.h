/*
 * verbs.h - the verbs of dq. Each comes from its own cmd_VERB.c.
 */
#ifndef DQ_CLI_LINE_VERBS_H
#define DQ_CLI_LINE_VERBS_H

#include "cli/line/cmd.h"

/* clang-format off */
extern const struct cmd
    cmd_add,
    cmd_bench,
    cmd_cancel,
    cmd_check,
    cmd_completion,
    cmd_delete,
    cmd_doctor,
    cmd_errors,
    cmd_events,
    cmd_export,
    cmd_forecast,
    cmd_help,
    cmd_import,
    cmd_init,
    cmd_list,
    cmd_logs,
    cmd_pause,
    cmd_pollers,
    cmd_purge,
    cmd_quiet,
    cmd_rehearse,
    cmd_reschedule,
    cmd_resume,
    cmd_retry,
    cmd_run_now,
    cmd_show,
    cmd_stats,
    cmd_tags,
    cmd_top,
    cmd_unquiet,
    cmd_version,
    cmd_wait,
    cmd_why;
/* clang-format on */

extern const struct cmd *const verbs_table[]; /* NULL-terminated, by group */
/* Finds a verb by name or alias. If there is none: NULL and ERR_USAGE, with the nearest name. */
const struct cmd *verbs_find(const char *name, struct err *err);

#endif
