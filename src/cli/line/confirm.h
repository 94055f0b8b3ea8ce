/*
 * confirm.h - asks a person before many tasks are changed: what, how many, and where.
 */
#ifndef DQ_CLI_LINE_CONFIRM_H
#define DQ_CLI_LINE_CONFIRM_H

#include "cli/line/cmd.h"

#define CONFIRM_TYPED 1000 /* more tasks: the name of the place has to be typed */

/* "cancel 3,000 tasks (mail) on prod, db1/dq? [y/N] ". verb: "cancel"; tags: as survey_put_tags
 * appends them. 0: agreed. ERR_NOT_FOUND: not, so nothing is changed. ERR_USAGE: standard input is
 * no terminal, and -y is needed. */
int confirm_change(const struct cmd_context *c, const char *verb, uint64_t count, const char *tags,
                   struct err *err) __attribute__((warn_unused_result));
/* "pause mail on prod, db1/dq? [y/N] ": y agrees, any other key does not. An interrupt does not
 * either, and stays noted, as interrupt.h has it. */
bool confirm_tag(const struct cmd_context *c, const char *verb, const char *tag);
/* The next key of the terminal that stdin is, typed after the prompt, which goes to stderr; the
 * first byte of it. '\0': the input ended, or an interrupt came. */
char confirm_key(const char *prompt);
/* "prod, db1/dq" */
void confirm_put_place(struct buf *b, const struct cmd_context *c);

#endif
