/*
 * verbs.c - finds a verb in the table, also by what other programs call it.
 */
#include "cli/line/verbs.h"

#include "base/text.h"

#include <string.h>

/* clang-format off */
#define ROW(name) &cmd_##name,
const struct cmd *const verbs_table[] = {VERBS(ROW) NULL};

/* What other programs call a verb. */
static const struct {
    const char *word, *verb;
} synonyms[] = {
    {"log", "events"},
    {"history", "events"},
    {"audit", "events"},
    {"cron", "schedule"},
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
