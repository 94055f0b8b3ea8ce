/*
 * top_view.h - the lines of `dq top`, for a width. Pure.
 */
#ifndef DQ_CLI_SHOW_TOP_VIEW_H
#define DQ_CLI_SHOW_TOP_VIEW_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOP_VIEW_STEPS 10 /* of a sparkline, a minute each */

struct top_tag {
    char *name;
    uint64_t running, due;
    bool due_sampled; /* an estimate */
    bool paused;
    int64_t late_ms;     /* of the task that is latest; -1: none is */
    double done, failed; /* a second */
    /* how long half of the attempts that ended took at most, and 95 percent; -1: none ended */
    int64_t took_p50_ms, took_p95_ms;
    char *why; /* why what is due waits, or what comes next; "": nothing to say */
};

struct top_data {
    size_t alive, dqds, quiet, silent; /* as in struct fleet */
    uint64_t running, slots, failed_tasks;
    unsigned kept, kept_idle; /* processes that stay, as their dqds have last said */
    bool failed_sampled;      /* an estimate */
    double done, failed;      /* a second */
    uint64_t done_steps[TOP_VIEW_STEPS], failed_steps[TOP_VIEW_STEPS];
    struct top_tag *tags;
    size_t count;
    char *next; /* the schedules that come next: "nightly in 3m, feed in 7m"; NULL: there is none */
};

enum top_sort {
    TOP_SORT_LATE,
    TOP_SORT_DUE,
    TOP_SORT_RUN,
    TOP_SORT_DONE,
    TOP_SORT_FAILED,
    TOP_SORT_TAG,
    TOP_SORT_COUNT
};
extern const char *const top_view_sorts[];

void top_view_free(struct top_data *d); /* the tags; d is empty afterwards */
/* The largest first, names from A to Z; paused tags below the others. */
void top_view_sort(struct top_data *d, enum top_sort by);

/* Each appends one line without newline, in which nothing acts on a terminal, meant for `width`
 * columns; redraw_page cuts what is wider. top_view_title: `left`, and `right` at the right end if
 * there is room. */
void top_view_title(struct buf *b, const char *left, const char *right, unsigned width);
void top_view_summary(struct buf *b, const struct top_data *d);
/* The keys, those that matter most first, as many as there is room for. */
void top_view_keys(struct buf *b, unsigned width);
void top_view_heading(struct buf *b, const struct top_data *d, unsigned width);
void top_view_tag(struct buf *b, const struct top_data *d, const struct top_tag *t, unsigned width);

#endif
