/*
 * stats_html.h - dq stats --html: one page that needs nothing else, for a mail or a ticket.
 */
#ifndef DQ_CLI_JUDGE_STATS_HTML_H
#define DQ_CLI_JUDGE_STATS_HTML_H

#include "base/err.h"
#include "cli/judge/failures.h"
#include "cli/judge/stats.h"
#include "cli/show/cell.h"
#include "cli/show/top_view.h"
#include "store/ask/forecast_store.h"

#define STATS_HTML_STEPS 96 /* about, in a plot */
#define STATS_HTML_AHEAD_HOURS 24

struct stats_page {
    const struct stats *stats;
    const struct top_data *now;    /* which dqds are alive, and why tags wait */
    const struct failures *errors; /* of the period, sorted */
    bool errors_sampled;
    const struct forecast *ahead; /* by hour */
    int64_t refresh_ms;           /* -1: the page is not loaded again */
    const char *place, *server;   /* what the page is about */
};
/* Writes the page beside the file, then renames it; path "-": to standard output. ERR_SYSTEM. */
int stats_html_write(const struct stats_page *p, const char *path, const struct cell_style *style,
                     struct err *err) __attribute__((warn_unused_result));

#endif
