/*
 * stats.h - what dq stats knows of tags: how many tasks there are now, and what became of tasks in
 * a period, in steps of time.
 */
#ifndef DQ_CLI_JUDGE_STATS_H
#define DQ_CLI_JUDGE_STATS_H

#include "cli/judge/fleet.h"
#include "store/db/db.h"
#include "store/fleet/minute_store.h"

#include <stddef.h>
#include <stdint.h>

struct stats_tag {
    struct tag_info info; /* first, as TAG_INFO_COUNTS wants it; tag NULL: all tags together */
    struct counts sum;    /* of the period */
    struct counts *steps; /* step_count of them; NULL: nothing was counted */
    const struct stats *of;
    int64_t elapsed_ms; /* how long the time of sum has lasted so far */
};

struct stats {
    int64_t now_at;
    int64_t from_at, step_ms; /* the period: steps of this length; the last one may not be over */
    size_t step_count;
    struct stats_tag *tags; /* all tags together, then each by name (strcmp) */
    size_t count;
};

struct stats_ask {
    const struct fleet *fleet;           /* may be empty */
    const char *tag_glob;                /* NULL: all tags */
    int64_t since_ms, step_ms, align_ms; /* as minute_store_read takes them */
    struct tag_count_how how;
};
/* Reads it all. step_ms: a minute or more. Free *ret with stats_done. Blocks on the database. */
int stats_read(struct db *db, const struct stats_ask *ask, struct stats *ret, struct err *err)
    __attribute__((warn_unused_result));
void stats_done(struct stats *s);
/* Adds the counts and the lateness of a tag to those of several. */
void stats_add(struct tag_info *all, const struct tag_info *t);

/* How long the period, or a step of it, has lasted so far. */
int64_t stats_elapsed_ms(const struct stats *s);
int64_t stats_step_elapsed_ms(const struct stats *s, size_t step);
/* The start of a step. */
int64_t stats_step_at(const struct stats *s, size_t step);
/* The length of steps of whole minutes, of which `count` cover a period. */
int64_t stats_step_ms(int64_t since_ms, size_t count);
/* Events per second in a time. */
double stats_per_second(uint64_t events, int64_t elapsed_ms);

#endif
