/*
 * select.h - the options with which list, cancel, retry and others select tasks; they have the same
 * names and meanings everywhere.
 */
#ifndef DQ_CLI_LINE_SELECT_H
#define DQ_CLI_LINE_SELECT_H

#include "cli/line/cmd.h"
#include "store/ask/task_list.h"

struct select_values {
    const char *tag, *key, *error, *host; /* several: lines */
    const char *body;
    unsigned statuses;
    struct cmd_when since[TASK_FILTER_TIMES], before[TASK_FILTER_TIMES];
};

/* Rows of a table of struct cmd_option; prefix leads from the verb's struct `type` to a struct
 * select_values, like `select.`. The help of a verb shows the first SELECT_SHOWN of them. */
#define SELECT_SHOWN 5
/* clang-format off */
#define SELECT_OPTIONS(type, prefix)                                                                         \
    {"tag", 't', CMD_TAGS, offsetof(type, prefix tag), "GLOB", NULL, 0},                                     \
    {"status", 's', CMD_STATUSES, offsetof(type, prefix statuses), "S[,S]", NULL, 0},                        \
    {"key", 'k', CMD_NAMES, offsetof(type, prefix key), "KEY", NULL, 0},                                     \
    {"error", 0, CMD_TEXTS, offsetof(type, prefix error), "GLOB", NULL, 0},                                  \
    {"since", 0, CMD_SINCE, offsetof(type, prefix since[TASK_FILTER_CREATED]), "TIME|D", NULL, 0},           \
    {"created-before", 0, CMD_SINCE, offsetof(type, prefix before[TASK_FILTER_CREATED]), "TIME|D", NULL, 0}, \
    {"host", 0, CMD_TEXTS, offsetof(type, prefix host), "GLOB", NULL, 0},                                    \
    {"body", 0, CMD_BODY, offsetof(type, prefix body), "TEXT", NULL, 0},                                     \
    {"due-before", 0, CMD_INSTANT, offsetof(type, prefix before[TASK_FILTER_DUE]), "TIME", NULL, 0},         \
    {"due-after", 0, CMD_INSTANT, offsetof(type, prefix since[TASK_FILTER_DUE]), "TIME", NULL, 0},           \
    SELECT_TIME("started", type, prefix, TASK_FILTER_STARTED),                                               \
    SELECT_TIME("finished", type, prefix, TASK_FILTER_FINISHED)
#define SELECT_TIME(name, type, prefix, time)                                                                \
    {name "-since", 0, CMD_SINCE, offsetof(type, prefix since[time]), "TIME|D", NULL, 0},                    \
    {name "-before", 0, CMD_SINCE, offsetof(type, prefix before[time]), "TIME|D", NULL, 0}
/* clang-format on */

/* The rows themselves, for `dq help filters`. */
extern const struct cmd_option select_filters[];
extern const size_t select_filter_count;

/* Whether any of them was given, the statuses apart. */
bool select_given(const struct select_values *v);
/* The filter they make; may ask the clock. statuses 0: by_default. */
int select_filter(struct cmd_context *c, const struct select_values *v, unsigned by_default,
                  struct task_filter *ret, struct err *err) __attribute__((warn_unused_result));
/* The note for task_filter.unordered, if it is set: why it took so long. */
void select_note_unordered(const struct cmd_context *c, bool unordered);
/* "pending or running", for messages. */
void select_put_statuses(struct buf *b, unsigned statuses);

#endif
