/*
 * survey.h - what a verb is about to change: how many tasks, of which tags, and a few of them.
 */
#ifndef DQ_CLI_JUDGE_SURVEY_H
#define DQ_CLI_JUDGE_SURVEY_H

#include "base/index.h"
#include "base/task.h"
#include "cli/line/cmd.h"

#define SURVEY_SAMPLES 5

struct survey_tag {
    char *tag;
    uint64_t tasks;
};
struct survey { /* initialize with {0}, free with survey_done */
    struct survey_tag *tags;
    size_t count, cap;
    struct index index;               /* of the tags */
    uint64_t tasks, running, again;   /* again: of the running ones, were added again meanwhile */
    uint64_t expiring;                /* have a time at which they expire */
    uint64_t samples[SURVEY_SAMPLES]; /* ids of the first ones */
    size_t sample_count;
};
void survey_add(struct survey *s, const struct task *t);
void survey_done(struct survey *s);

/* The tag, if there is one only; else NULL. */
const char *survey_only_tag(const struct survey *s);
/* "mail", "mail, sms and 3 more tags"; those with most tasks first. Escaped. */
void survey_put_tags(struct buf *b, struct survey *s);
/* For people, on stdout: a table of the tags, and one of the samples. */
int survey_print(struct cmd_context *c, struct survey *s, struct err *err)
    __attribute__((warn_unused_result));
/* `,"tags":[...],"sample":[...]` */
int survey_put_members(struct buf *b, struct cmd_context *c, struct survey *s, struct err *err)
    __attribute__((warn_unused_result));

#endif
