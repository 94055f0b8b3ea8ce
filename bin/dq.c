/*
 * dq.c - the program dq: reads its command line, sets up what the verb needs, runs it, and speaks.
 *
 * Invariant: an error is printed once, here, as one line; the exit status follows from its code
 * alone.
 */
#include "cli/line/live.h"
#include "cli/line/option.h"
#include "cli/line/usage.h"
#include "cli/line/verbs.h"
#include "cli/show/pager.h"

#include "base/log.h"
#include "base/rlimit.h"
#include "base/task.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

static int print_help(const struct cmd_context *c)
{
    struct buf b = BUF_INIT;
    pager_allow(!c->no_pager);
    if (c->cmd)
        usage_put_verb(&b, c->cmd);
    else
        usage_put_all(&b, verbs_table);
    out_take(&b);
    return 0;
}

static int run(struct cmd_context *c, int argc, char **argv, struct err *err)
{
    int rc = option_parse(c, verbs_find, argc, argv, err);
    if (rc < 0)
        return rc;
    if (c->help)
        return print_help(c);
    if (c->version)
        c->cmd = &cmd_version;
    if (!c->cmd) { /* a script whose variable is empty has to notice */
        c->exit_status = err_exit_status(ERR_USAGE);
        return print_help(c);
    }
    const char *const *columns = cmd_value(c, "columns");
    if (columns && *columns) {
        struct out_table t = cmd_columns(c->cmd, c->verbose);
        if (strcmp(*columns, "help") == 0) {
            out_columns_help(&t);
            return 0;
        }
        t.names = *columns;
        if (c->cmd->columns && out_check(&t, err) < 0)
            return err->code;
    }
    rc = cmd_open(c, c->cmd->level, err);
    return rc < 0 ? rc : live_run(c, err);
}

int main(int argc, char **argv)
{
    struct cmd_context c = {.now_at = TASK_TIME_NONE};
    struct err err = {0};
    log_fill_descriptors();
    /* a connection that breaks is an error like others; out_flush makes up for stdout */
    signal(SIGPIPE, SIG_IGN);
    int rc = rlimit_check(false, &err);
    if (rc == 0)
        rc = run(&c, argc, argv, &err);
    struct err flush_err = {0};
    if (out_flush(&flush_err) < 0 && rc >= 0) {
        err = flush_err;
        rc = err.code;
    }
    pager_end();
    if (rc < 0)
        cmd_fail(&c, &err);
    cmd_close(&c);
    return rc < 0 ? err_exit_status(rc) : c.exit_status;
}
