/*
 * html.h - pieces of a page, in which data stays text.
 */
#ifndef DQ_CLI_SHOW_HTML_H
#define DQ_CLI_SHOW_HTML_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

/* In an element or between double quotes; what a terminal would act on is escaped, too. */
void html_put_text(struct buf *b, const char *s);
/* "12,345"; "~12,345" if it is an estimate. */
void html_put_count(struct buf *b, uint64_t n, bool sampled);
/* "1m30s"; "-" if it is negative: there is none. */
void html_put_duration(struct buf *b, int64_t ms);

#endif
