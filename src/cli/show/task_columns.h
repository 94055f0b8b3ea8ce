/*
 * task_columns.h - the columns of a task: of `dq list`, `dq show`, and of their JSON; and those of
 * the counts of a tag: of `dq tags` and `dq stats`.
 */
#ifndef DQ_CLI_SHOW_TASK_COLUMNS_H
#define DQ_CLI_SHOW_TASK_COLUMNS_H

#include "base/task.h"
#include "cli/show/out.h"

/* What the columns show beside the row; NULL: nothing. */
struct task_columns_arg {
    bool paused; /* the tag of the pending task is */
};
/* Rows are struct task. The last one that is counted is `body`: it is set only if bodies were
 * loaded. Behind it are `again_body`, `output`, and others that are only exported; total: with
 * these. */
extern const struct column task_columns[];
extern const size_t task_column_count, task_column_total;

enum cell_colour task_status_colour(int status);

/* Rows begin with a struct tag_info. */
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
