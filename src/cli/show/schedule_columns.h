/*
 * schedule_columns.h - what dq shows of a schedule.
 */
#ifndef DQ_CLI_SHOW_SCHEDULE_COLUMNS_H
#define DQ_CLI_SHOW_SCHEDULE_COLUMNS_H

#include "base/column.h"

#include <stddef.h>

/* Of a struct schedule; the getters' arg is the struct cell_style. */
extern const struct column schedule_columns[];
extern const size_t schedule_column_count;

#endif
