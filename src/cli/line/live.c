/*
 * live.c - see live.h.
 */
#include "cli/line/live.h"

#include "base/task.h"
#include "base/when.h"
#include "cli/line/option.h"
#include "cli/show/redraw.h"
#include "cli/show/top_view.h"
#include "store/db/db_connect.h"

#include <sys/param.h>

void live_title(struct buf *b, const struct cmd_context *c, const char *left, unsigned width)
{
    BUF_LOCAL struct buf right = BUF_INIT;
    char clock[WHEN_TEXT_SIZE];
    const char *name = c->conf->dq.name;

    buf_printf(&right, "%s%s%s/%s%s  ", name, *name ? "  " : "", db_host(c->db),
               c->conf->mysql.database, db_connect_is_read_only(c->db) ? " (read-only)" : "");
    if (c->style.cell.utc)
        when_format_utc(clock, when_host_wall());
    else
        when_format_local(clock, when_host_wall());
    buf_add(&right, clock + 11, 8); /* hh:mm:ss */
    top_view_title(b, left, right.data, width);
}

static void draw(const struct cmd_context *c, const struct buf *rows, const char *trouble)
{
    BUF_LOCAL struct buf page = BUF_INIT, left = BUF_INIT;
    unsigned width, height;
    redraw_size(&width, &height);
    if (trouble) {
        buf_str(&left, trouble);
    } else {
        buf_printf(&left, "dq %s", c->cmd->name);
        option_put_given(&left, c, true);
    }
    live_title(&page, c, left.data, width);
    buf_str(&page, "\n\n");
    buf_add(&page, rows->data ? rows->data : "", rows->len);
    redraw_page(page.data);
}

int live_run(struct cmd_context *c, struct err *err)
{
    BUF_LOCAL struct buf rows = BUF_INIT;
    const int64_t *every_ms = cmd_value(c, "watch");
    if (!every_ms || *every_ms < 0)
        return c->cmd->run(c, err);
    if (c->style.format != OUT_TABLE)
        return err_set(err, ERR_USAGE,
                       "--watch shows a table on a terminal; programs read dq events -f -o ndjson");
    int rc = redraw_begin(err);
    if (rc < 0)
        return err_set(err, rc, "%s; without --watch, dq %s prints this once", err->text,
                       c->cmd->name);
    do {
        struct buf fresh = BUF_INIT;
        redraw_size(&c->style.width, &c->height);
        c->now_at = TASK_TIME_NONE;
        c->notes = &fresh;
        out_capture(&fresh);
        db_connect_seek_writable(c->db);
        rc = c->cmd->run(c, err);
        out_capture(NULL);
        c->notes = NULL;
        bool away = rc < 0 && err_may_pass(rc);
        if (rc < 0 && !away) {
            buf_done(&fresh);
            break;
        }
        buf_done(away ? &fresh : &rows);
        rows = away ? rows : fresh;
        draw(c, &rows, away ? "database away, retrying" : NULL);
        rc = 0;
    } while (redraw_wait(MAX(*every_ms, LIVE_LEAST_S * WHEN_SECOND)));
    redraw_end();
    return rc;
}
