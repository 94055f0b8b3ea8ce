/*
 * spark.h - plots in a line of text: ▁▂▃▄▅▆▇█.
 */
#ifndef DQ_CLI_SHOW_SPARK_H
#define DQ_CLI_SHOW_SPARK_H

#include "base/buf.h"

#include "cli/show/cell.h"

#include <stddef.h>
#include <stdint.h>

/* Appends a character for each value, as high as the value is in comparison with the highest; 0 is
 * a blank. */
void spark_line(struct buf *b, const uint64_t *values, size_t count);
/* Cells that show people a plot, and programs the values as a list: a line, and a bar for one value
 * of which `most` is the highest. Valid until the next cell. */
void spark_set_line(struct cell *ret, const uint64_t *values, size_t count);
void spark_set_bar(struct cell *ret, const uint64_t *value, uint64_t most);

#endif
