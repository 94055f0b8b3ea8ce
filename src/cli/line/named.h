/*
 * named.h - the tasks that a verb is about: ids, or the key that an application gave its task.
 */
#ifndef DQ_CLI_LINE_NAMED_H
#define DQ_CLI_LINE_NAMED_H

#include "cli/line/cmd.h"

/* The options of a verb, in a table of struct cmd_option; both fields are const char *. */
/* clang-format off */
#define NAMED_KEY(offset) {"key", 'k', CMD_NAME, offset, "KEY", NULL, 0}
#define NAMED_TAG(offset) {"tag", 't', CMD_TAGS, offset, "GLOB", NULL, 0}
/* clang-format on */

/* The ids among the operands (as cmd_ids), or that of the task with the key. *ret is on the heap.
 * Blocks on the database if key is given. ERR_USAGE: both, neither, a glob without a key, or tasks
 * of several tags have the key. ERR_NOT_FOUND: none has it. */
int named_ids(const struct cmd_context *c, const char *key, const char *tag_glob, bool sorted,
              uint64_t **ret, size_t *ret_count, struct err *err)
    __attribute__((warn_unused_result));

#endif
