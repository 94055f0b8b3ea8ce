/*
 * verbs.c - the table of verbs. Its order is that of `dq help`: of use, within
 * each group.
 */
#include "cli/line/verbs.h"

#include "base/text.h"

#include <string.h>

/* clang-format off */
const struct cmd *const verbs_table[] = {
    &cmd_list,
    &cmd_show,
    &cmd_why,
    &cmd_errors,
    &cmd_tags,
    &cmd_stats,
    &cmd_top,
    &cmd_events,
    &cmd_forecast,
    &cmd_check,
    &cmd_pollers,

    &cmd_add,
    &cmd_cancel,
    &cmd_retry,
    &cmd_reschedule,
    &cmd_run_now,
    &cmd_pause,
    &cmd_resume,
    &cmd_quiet,
    &cmd_unquiet,
    &cmd_delete,

    &cmd_init,
    &cmd_doctor,
    &cmd_bench,
    &cmd_purge,
    &cmd_export,
    &cmd_import,

    &cmd_rehearse,
    &cmd_logs,
    &cmd_wait,

    &cmd_help,
    &cmd_completion,
    &cmd_version,
    NULL,
};

/* What other programs call a verb. */
static const struct {
    const char *word, *verb;
} synonyms[] = {
    {"log", "events"},
    {"history", "events"},
    {"audit", "events"},
    {"unpause", "resume"},
    {"kill", "cancel"},
    {"stop", "cancel"},
    {"requeue", "retry"},
    {"rerun", "retry"},
    {"describe", "show"},
    {"inspect", "show"},
    {"ps", "pollers"},
    {"workers", "pollers"},
    {"push", "add"},
    {"enqueue", "add"},
    {"postpone", "reschedule"},
    {"delay", "reschedule"},
    {"migrate", "init"},
    {"tail", "logs"},
    {"output", "logs"},
};
/* clang-format on */

static const char *synonym(const char *name)
{
    for (size_t i = 0; i < sizeof synonyms / sizeof synonyms[0]; i++)
        if (strcmp(synonyms[i].word, name) == 0)
            return synonyms[i].verb;
    return NULL;
}

const struct cmd *verbs_find(const char *name, struct err *err)
{
    const char *names[2 * sizeof verbs_table / sizeof verbs_table[0]];
    size_t count = 0;
    for (size_t i = 0; verbs_table[i]; i++) {
        const struct cmd *cmd = verbs_table[i];
        if (strcmp(cmd->name, name) == 0 || (cmd->alias && strcmp(cmd->alias, name) == 0))
            return cmd;
        names[count++] = cmd->name;
        if (cmd->alias)
            names[count++] = cmd->alias;
    }
    const char *near = synonym(name);
    if (!near)
        near = text_nearest(name, names, count);
    if (near)
        err_set(err, ERR_USAGE, "unknown command \"%s\": did you mean \"%s\"?", name, near);
    else
        err_set(err, ERR_USAGE, "unknown command \"%s\": see dq help", name);
    return NULL;
}
