/*
 * settle_fit.h - results that fit into what the server takes at once.
 */
#ifndef DQ_STORE_SETTLE_FIT_H
#define DQ_STORE_SETTLE_FIT_H

#include "store/settle_store.h"

/* The server's max_allowed_packet. ERR_CONFIG, which names it: statements as long as those of dqd
 * would not fit. */
int settle_fit_max_packet(struct db *db, size_t *ret_bytes, struct err *err)
    __attribute__((warn_unused_result));

/* A copy of s in which outputs longer than `most` bytes have lost their beginning, behind a line
 * that says so, or NULL if none is so long. settle_fit_free frees it; NULL is fine. */
struct settlement *settle_fit(const struct settlement *s, size_t count, size_t most)
    __attribute__((warn_unused_result));
void settle_fit_free(struct settlement *fit, const struct settlement *s, size_t count);

#endif
