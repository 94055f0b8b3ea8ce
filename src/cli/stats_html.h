/*
 * stats_html.h - dq stats --html: one page that needs nothing else, for a mail or a ticket.
 */
#ifndef DQ_CLI_STATS_HTML_H
#define DQ_CLI_STATS_HTML_H

#include "base/err.h"
#include "cli/cell.h"
#include "cli/stats.h"
#include "cli/top_view.h"

#define STATS_HTML_STEPS 96 /* about, in a plot */

struct stats_page {
    const struct stats *stats;
    const struct top_data *now; /* which dqds are alive, and why tags wait */
    const char *place, *server; /* what the page is about */
};
/* Writes the page beside the file, then renames it; path "-": to standard output. ERR_SYSTEM. */
int stats_html_write(const struct stats_page *p, const char *path, const struct cell_style *style,
                     struct err *err) __attribute__((warn_unused_result));

#endif
