/*
 * schedule_words.h - a schedule as the words of dq schedule set: on its command line, in a line of
 * a file of dq schedule apply, and in what dq schedule export prints.
 */
#ifndef DQ_CLI_MANY_SCHEDULE_WORDS_H
#define DQ_CLI_MANY_SCHEDULE_WORDS_H

#include "cli/line/cmd.h"
#include "store/fleet/schedule_row.h"

struct schedule_values {
    const char *cron, *every, *gap, *zone, *body_json;
    struct cmd_when from, to;
    int64_t spread_ms, within_ms, expires_ms, alarm_after_ms;
    int catch_up, overlap;
    bool only_new;
};

/* The schedule of a command line that was read, with cmd_context.values a struct schedule_values.
 * Its texts are heap memory, freed by schedule_row_done. A cron expression without a zone has that
 * of this host. ERR_USAGE, ERR_DATA. */
int schedule_words_take(struct cmd_context *c, struct schedule *ret, struct err *err)
    __attribute__((warn_unused_result));
/* The same of a line of a file; set: dq schedule set. 1, or 0: it is empty or a comment. */
int schedule_words_read(struct cmd_context *c, const struct cmd *set, const char *line,
                        struct schedule *ret, struct err *err) __attribute__((warn_unused_result));
/* Appends such a line, without its end: what has its default is left out. */
void schedule_words_put(struct buf *b, const struct cmd *set, const struct schedule *s);

/* "every 5 minutes (Europe/Berlin)" */
void schedule_words_put_sentence(struct buf *b, const struct schedule *s);
/* Appends the columns in which two versions differ: "zone, expires". */
void schedule_words_put_changed(struct buf *b, unsigned changed);
/* What a change of the clock does to a slot: by enum timetable_shift; NULL: nothing. */
extern const char *const schedule_words_shifts[];

#endif
