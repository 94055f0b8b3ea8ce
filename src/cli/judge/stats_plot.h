/*
 * stats_plot.h - the plots of dq stats --html, as SVG in a page.
 */
#ifndef DQ_CLI_JUDGE_STATS_PLOT_H
#define DQ_CLI_JUDGE_STATS_PLOT_H

#include "cli/judge/stats.h"
#include "cli/show/cell.h"
#include "store/ask/forecast_store.h"

/* What ended in each step, of all tags: a figure with axes. */
void stats_plot_ends(struct buf *b, const struct stats *s, const struct cell_style *style);
/* How late attempts started, of all tags, in each step. */
void stats_plot_lateness(struct buf *b, const struct stats *s, const struct cell_style *style);
/* What becomes due in each step to come. */
void stats_plot_ahead(struct buf *b, const struct forecast *f, int64_t step_ms,
                      const struct cell_style *style);
/* What ended in each step, of one tag: small, without axes. */
void stats_plot_trend(struct buf *b, const struct stats *s, const struct stats_tag *t);

#endif
