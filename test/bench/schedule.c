/*
 * schedule.c - planned instants: the same for every contender of a round.
 *
 * usage: schedule COUNT SPAN_MS START_US; prints COUNT instants in microseconds, ascending, one a
 * line, spread at random (of a fixed seed) over the SPAN_MS that follow START_US; whole
 * milliseconds, as a DATETIME(3) can hold.
 */
#include "tool.h"

#include <stdio.h>
#include <stdlib.h>

static int compare(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

int main(int argc, char **argv)
{
    long count, span, start;
    int64_t *at;

    if (argc != 4)
        tool_die("usage: schedule COUNT SPAN_MS START_US");
    count = tool_number(argv[1], "COUNT");
    span = tool_number(argv[2], "SPAN_MS");
    start = tool_number(argv[3], "START_US") / 1000;
    at = calloc((size_t)count + 1, sizeof *at);
    if (!at)
        tool_die("memory");
    srandom(4711);
    for (long i = 0; i < count; i++)
        at[i] = (start + (span ? random() % span : 0)) * 1000;
    qsort(at, (size_t)count, sizeof *at, compare);
    for (long i = 0; i < count; i++)
        printf("%lld\n", (long long)at[i]);
    free(at);
    return 0;
}
