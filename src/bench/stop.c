/*
 * stop.c - the end of a measure.
 */
#include "bench/stop.h"
#include "base/interrupt.h"
#include "base/when.h"

#define LEAST 3

bool stop_not_yet(size_t done, int64_t end_us)
{
    return !interrupt_asked() && (done < LEAST || when_steady_us() < end_us);
}
