/*
 * title.c - see title.h.
 */
#include "cli/line/title.h"

#include "base/when.h"
#include "cli/show/top_view.h"

void title_put(struct buf *b, const struct cmd_context *c, const char *left, unsigned width)
{
    BUF_LOCAL struct buf right = BUF_INIT;
    char clock[WHEN_TEXT_SIZE];
    const char *name = c->conf->dq.name;

    buf_printf(&right, "%s%s%s/%s  ", name, *name ? "  " : "", db_host(c->db),
               c->conf->mysql.database);
    if (c->style.cell.utc)
        when_format_utc(clock, when_host_wall());
    else
        when_format_local(clock, when_host_wall());
    buf_add(&right, clock + 11, 8); /* hh:mm:ss */
    top_view_title(b, left, right.data, width);
}
