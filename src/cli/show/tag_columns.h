/*
 * tag_columns.h - the counts of a tag, as `dq tags` and `dq stats` show them. Rows begin with a
 * struct tag_info.
 */
#ifndef DQ_CLI_SHOW_TAG_COLUMNS_H
#define DQ_CLI_SHOW_TAG_COLUMNS_H

#include "cli/show/out.h"

void tag_get_pending(const void *row, const void *arg, struct cell *ret);
void tag_get_running(const void *row, const void *arg, struct cell *ret);
void tag_get_done(const void *row, const void *arg, struct cell *ret);
void tag_get_failed(const void *row, const void *arg, struct cell *ret);
void tag_get_cancelled(const void *row, const void *arg, struct cell *ret);
void tag_get_due(const void *row, const void *arg, struct cell *ret);
void tag_get_late(const void *row, const void *arg, struct cell *ret);
void tag_get_sampled(const void *row, const void *arg, struct cell *ret);

/* Rows of a column table. */
/* clang-format off */
#define TAG_COUNT_COLUMNS                                                                          \
    OUT_GET("pending", U64, 0, tag_get_pending), OUT_GET("running", U64, 0, tag_get_running),      \
    OUT_GET("done", U64, 0, tag_get_done), OUT_GET("failed", U64, 0, tag_get_failed),              \
    OUT_GET("cancelled", U64, 0, tag_get_cancelled), OUT_GET("due", U64, 0, tag_get_due),          \
    OUT_GET("late", MS, 0, tag_get_late), OUT_GET("sampled", BOOL, 0, tag_get_sampled)
/* clang-format on */

#endif
