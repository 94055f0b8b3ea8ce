/*
 * spark.c - see spark.h. Invariant: what is not 0 is seen.
 */
#include "cli/show/spark.h"

#include <sys/param.h>

#define LEVELS 8

void spark_line(struct buf *b, const uint64_t *values, size_t count)
{
    static const char *const levels[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    uint64_t most = 1;

    for (size_t i = 0; i < count; i++)
        most = MAX(most, values[i]);
    for (size_t i = 0; i < count; i++) {
        double level = (double)values[i] / (double)most * LEVELS;

        buf_str(b, levels[values[i] ? MIN(MAX((int)(level + 0.5), 1), LEVELS) : 0]);
    }
}

void spark_bar(struct buf *b, uint64_t value, uint64_t most, unsigned width)
{
    static const char *const parts[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    double length = most ? (double)MIN(value, most) / (double)most * width * LEVELS : 0;
    unsigned eighths = MAX((unsigned)(length + 0.5), value ? 1U : 0U);

    for (unsigned i = 0; i < eighths / LEVELS; i++)
        buf_str(b, "█");
    buf_str(b, parts[eighths % LEVELS]);
}

void spark_set(struct cell *ret, struct buf *list, const struct buf *plot, const uint64_t *values,
               size_t count)
{
    buf_reset(list);
    buf_chr(list, '[');
    for (size_t i = 0; i < count; i++) {
        buf_str(list, i ? "," : "");
        buf_u64(list, values[i]);
    }
    buf_chr(list, ']');
    ret->kind = CELL_JSON;
    ret->text = list->data;
    ret->len = list->len;
    ret->people = plot->data;
}
