/*
 * figure.c - figures from times and counts.
 */
#include "bench/figure.h"

#include "base/interrupt.h"
#include "base/mem.h"
#include "base/order.h"
#include "base/when.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define LEAST 3

bool figure_goes_on(size_t done, int64_t end_us)
{
    return !interrupt_asked() && (done < LEAST || when_steady_us() < end_us);
}

void figure_times_add(struct figure_times *t, int64_t us)
{
    MEM_ROOM(t->us, t->count, t->cap);
    t->us[t->count++] = us;
}

/* The smallest value that at least this share of the sorted ones does not exceed. */
static double percentile_ms(const struct figure_times *t, size_t percent)
{
    size_t rank = (t->count * percent + 99) / 100;
    return (double)t->us[rank ? rank - 1 : 0] / 1000;
}

void figure_set_times(struct figure *ret, struct figure_times *t)
{
    if (t->count) {
        qsort(t->us, t->count, sizeof *t->us, order_times);
        *ret = (struct figure){.known = true,
                               .has_p99 = true,
                               .value = percentile_ms(t, 50),
                               .p99 = percentile_ms(t, 99)};
    }
    free(t->us);
    *t = (struct figure_times){NULL, 0, 0};
}

void figure_set_rate(struct figure *ret, double count, int64_t us)
{
    if (count > 0 && us > 0)
        *ret = (struct figure){.known = true, .value = count * 1e6 / (double)us};
}

void figure_set_unknown(struct figure *ret, const char *fmt, ...)
{
    va_list ap;

    *ret = (struct figure){.known = false};
    va_start(ap, fmt);
    vsnprintf(ret->why, sizeof ret->why, fmt, ap);
    va_end(ap);
}
