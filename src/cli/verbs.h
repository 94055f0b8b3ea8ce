/*
 * verbs.h - the verbs of dq, each from its own cmd_VERB.c.
 */
#ifndef DQ_CLI_VERBS_H
#define DQ_CLI_VERBS_H

#include "cli/cmd.h"

extern const struct cmd cmd_add, cmd_bench, cmd_cancel, cmd_delete, cmd_help, cmd_init, cmd_list,
    cmd_pause, cmd_pollers, cmd_purge, cmd_reschedule, cmd_resume, cmd_retry, cmd_run_now, cmd_show,
    cmd_stats, cmd_tags, cmd_version, cmd_wait;

#endif
