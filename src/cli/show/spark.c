/*
 * spark.c - see spark.h. Invariant: what is not 0 is seen.
 */
#include "cli/show/spark.h"

#include <inttypes.h>
#include <sys/param.h>

#define LEVELS 8
#define BAR_WIDTH 24

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

/* Appends a bar whose length is to BAR_WIDTH as value is to most, in eighths of a character. */
static void put_bar(struct buf *b, uint64_t value, uint64_t most)
{
    static const char *const parts[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    double length = most ? (double)MIN(value, most) / (double)most * BAR_WIDTH * LEVELS : 0;
    unsigned eighths = MAX((unsigned)(length + 0.5), value ? 1U : 0U);

    for (unsigned i = 0; i < eighths / LEVELS; i++)
        buf_str(b, "█");
    buf_str(b, parts[eighths % LEVELS]);
}

static void set(struct cell *ret, const uint64_t *values, size_t count, uint64_t most, bool bar)
{
    static struct buf plot, list;

    buf_reset(&plot);
    buf_str(&plot, "");
    if (bar)
        put_bar(&plot, *values, most);
    else
        spark_line(&plot, values, count);
    buf_reset(&list);
    for (size_t i = 0; i < count; i++)
        buf_printf(&list, i ? ",%" PRIu64 : "[%" PRIu64, values[i]);
    buf_str(&list, count ? "]" : "[]");
    *ret =
        (struct cell){.kind = CELL_JSON, .text = list.data, .len = list.len, .people = plot.data};
}

void spark_set_line(struct cell *ret, const uint64_t *values, size_t count)
{
    set(ret, values, count, 0, false);
}

void spark_set_bar(struct cell *ret, const uint64_t *value, uint64_t most)
{
    set(ret, value, 1, most, true);
}
