/*
 * cmd_version.c - dq version: of dq, of the client library, and with -v of the server.
 */
#include "cli/verbs.h"
#include "store/db_connect.h"

static void get_dq(const void *row __attribute__((unused)), const void *arg __attribute__((unused)),
                   struct cell *ret)
{
    cell_set_text(ret, PACKAGE_VERSION);
}

static void get_client(const void *row __attribute__((unused)),
                       const void *arg __attribute__((unused)), struct cell *ret)
{
    cell_set_text(ret, db_client());
}

static void get_server(const void *row, const void *arg __attribute__((unused)), struct cell *ret)
{
    const struct cmd_context *c = row;
    if (c->db)
        cell_set_text(ret, db_server(c->db));
}

static const struct out_column columns[] = {
    {"dq", NULL, false, 0, "", get_dq},
    {"client", NULL, false, 0, "", get_client},
    {"server", NULL, false, 0, "", get_server},
};

static int run(struct cmd_context *c, const void *values __attribute__((unused)), struct err *err)
{
    if (c->verbose) {
        int rc = cmd_open(c, CMD_DB, err);
        if (rc == 0)
            rc = db_connect(c->db, err);
        if (rc < 0)
            return rc;
    }
    return out_record(&c->style, columns, sizeof columns / sizeof columns[0], NULL, c, NULL, err);
}

const struct cmd cmd_version = {
    .name = "version",
    .group = "setup",
    .summary = "print the version of dq and its client library; -v: of the server",
    .usage = "",
    .level = CMD_NOTHING,
    .reads_only = true,
    .formats = OUT_NO_ID,
    .run = run,
};
