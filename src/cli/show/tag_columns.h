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

/* One row each of a column table. */
#define TAG_COUNT_COLUMNS                                                                          \
    {"pending", true, 0, "", tag_get_pending}, {"running", true, 0, "", tag_get_running},          \
        {"done", true, 0, "", tag_get_done}, {"failed", true, 0, "", tag_get_failed},              \
        {"cancelled", true, 0, "", tag_get_cancelled}, {"due", true, 0, "", tag_get_due},          \
    {                                                                                              \
        "late", true, 0, "", tag_get_late                                                          \
    }

#endif
