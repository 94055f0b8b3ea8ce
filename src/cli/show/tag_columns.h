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

/* A row of TAG_INFO_COUNTS or TAG_INFO_COLUMNS. */
#define TAG_COLUMN(sql, ...) COLUMN(tag_info, NULL, __VA_ARGS__),

#endif
