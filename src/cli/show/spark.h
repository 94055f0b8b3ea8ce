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
/* Appends a bar whose length is to width as value is to most, in eighths of a character. */
void spark_bar(struct buf *b, uint64_t value, uint64_t most, unsigned width);
/* A cell that shows people the plot, and programs the values as a list. `list` is made anew;
 * it and `plot` live as long as the cell. */
void spark_set(struct cell *ret, struct buf *list, const struct buf *plot, const uint64_t *values,
               size_t count);

#endif
