/*
 * moment_resolve.h - from what a text says about an instant to the instant.
 */
#ifndef DQ_BASE_MOMENT_RESOLVE_H
#define DQ_BASE_MOMENT_RESOLVE_H

#include "base/moment.h"

/* The instant. ERR_DATA, about the text of s: for a local time that does not exist or exists twice,
 * and a "next friday" that could be one of two days. */
int moment_resolve(const struct moment *m, const struct scan *s, int64_t now_at, int64_t *ret_at)
    __attribute__((warn_unused_result));

#endif
