/*
 * stats_html.h - dq stats --html: one page that needs nothing else, for a mail or a ticket.
 */
#ifndef DQ_CLI_STATS_HTML_H
#define DQ_CLI_STATS_HTML_H

#include "base/err.h"
#include "cli/cell.h"
#include "cli/stats.h"

#define STATS_HTML_STEPS 96 /* about, in a plot */

/* Writes the page beside the file, then renames it. title: what it is about. ERR_SYSTEM. */
int stats_html_write(const struct stats *s, const char *path, const char *title,
                     const struct cell_style *style, struct err *err)
    __attribute__((warn_unused_result));

#endif
