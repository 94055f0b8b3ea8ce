/*
 * select.h - which tasks a verb is about: by filters, with the same names and meanings everywhere,
 * or by an id or the key that an application gave its task; and what is said if there are none.
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

/* The options of a verb, in a table of struct cmd_option; both fields are const char *. */
/* clang-format off */
#define SELECT_KEY(offset) {"key", 'k', CMD_NAME, offset, "KEY", NULL, 0}
#define SELECT_TAG(offset) {"tag", 't', CMD_TAGS, offset, "GLOB", NULL, 0}
/* clang-format on */

/* The ids among the operands (as cmd_ids), or that of the task with the key. *ret is on the heap.
 * Blocks on the database if key is given. ERR_USAGE: both, neither, a glob without a key, or tasks
 * of several tags have the key. ERR_NOT_FOUND: none has it. */
int select_ids(const struct cmd_context *c, const char *key, const char *tag_glob, bool sorted,
               uint64_t **ret, size_t *ret_count, struct err *err)
    __attribute__((warn_unused_result));

/* What is said of a table without rows, to people, on stderr: the text, and if `tags` (NULL: all)
 * is a single name that no task has, the nearest one. May block on the database; its errors are
 * ignored. */
void select_note_none(struct cmd_context *c, const char *text, const char *tags);
/* Only the latter, for the name of a tag. Returns whether something was said. */
bool select_note_nearest(struct cmd_context *c, const char *tag);

#endif
