/*
 * prom.h - the text format of Prometheus: metrics that dq prints and dqd leaves in a file.
 */
#ifndef DQ_BASE_PROM_H
#define DQ_BASE_PROM_H

#include "base/buf.h"

#include <stdint.h>

/* Begins a metric: its lines of HELP and TYPE. type: "gauge", "counter", "histogram". */
void prom_metric(struct buf *b, const char *name, const char *type, const char *help);
/* `name{label="value",...} number`: labels come in pairs, up to a NULL. Values may hold any bytes:
 * a label has what text_escape makes of them. */
void prom_u64(struct buf *b, const char *name, uint64_t number, ...) __attribute__((sentinel));
/* The same for milliseconds, printed in seconds. */
void prom_seconds(struct buf *b, const char *name, int64_t ms, ...) __attribute__((sentinel));

#endif
