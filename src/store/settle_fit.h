/*
 * settle_fit.h - results that fit into what the server takes at once. Private to src/store.
 */
#ifndef DQ_STORE_SETTLE_FIT_H
#define DQ_STORE_SETTLE_FIT_H

#include "store/claim_store.h"

/* A copy of s in which outputs longer than `most` bytes have lost their beginning, behind a line that says so, or NULL if none is
 * so long. settle_fit_free frees it; NULL is fine. */
struct settlement *settle_fit(const struct settlement *s, size_t count, size_t most) __attribute__((warn_unused_result));
void settle_fit_free(struct settlement *fit, const struct settlement *s, size_t count);

#endif
