/*
 * late.c - what the records of stamp say.
 *
 * usage: late FILE; prints how many, then p50, p99 and the greatest lateness, then how long after
 * the earliest planned instant the last start was: milliseconds, in one line. A start before its
 * planned instant counts as it is: negative.
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
    FILE *f = argc == 2 ? fopen(argv[1], "rb") : NULL;
    int64_t *late = NULL, record[2], first = INT64_MAX, last = INT64_MIN;
    size_t n = 0;

    if (!f)
        tool_die("usage: late FILE");
    while (fread(record, sizeof record, 1, f) == 1) {
        late = realloc(late, (n + 1) * sizeof *late);
        if (!late)
            tool_die("memory");
        late[n++] = record[1] - record[0];
        first = record[0] < first ? record[0] : first;
        last = record[1] > last ? record[1] : last;
    }
    fclose(f);
    if (n == 0)
        tool_die("%s: empty", argv[1]);
    qsort(late, n, sizeof *late, compare);
    printf("%zu %.2f %.2f %.2f %.2f\n", n, (double)late[n / 2] / 1e3,
           (double)late[(n * 99 + 99) / 100 - 1] / 1e3, (double)late[n - 1] / 1e3,
           (double)(last - first) / 1e3);
    free(late);
    return 0;
}
