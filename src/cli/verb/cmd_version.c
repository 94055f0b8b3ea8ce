/*
 * cmd_version.c - dq version: of dq, of the client library, and with -v of what is out there: the
 * server, the schema, the live dqds.
 */
#include "cli/line/verbs.h"
#include "store/db/db_connect.h"
#include "store/fleet/poller_store.h"
#include "store/schema/schema.h"

#include <string.h>

struct versions {
    const char *dq, *client;
    int schema;
    const char *server; /* NULL: not asked */
    struct schema_range range;
    struct buf dqds; /* empty: not known */
};

#define VERSIONS ((const struct versions *)row)

OUT_GETTER(schema_version)
{
    if (VERSIONS->range.version)
        cell_set_number(ret, (uint64_t)VERSIONS->range.version);
}

OUT_GETTER(schema_compat)
{
    if (VERSIONS->range.compat)
        cell_set_number(ret, (uint64_t)VERSIONS->range.compat);
}

static const struct column columns[] = {
    OUT_FIELD(versions, "dq", TEXT, dq, 0),
    OUT_FIELD(versions, "client", TEXT, client, 0),
    OUT_FIELD(versions, "schema", INT, schema, 0),
    OUT_FIELD(versions, "server", TEXT, server, 0),
    OUT_GET("schema_version", INT, 0, get_schema_version),
    OUT_GET("schema_compat", INT, 0, get_schema_compat),
    OUT_FIELD(versions, "dqds", TEXT, dqds.data, 0),
};

/* "2 of 0.2.0, 1 of 0.1.0", in the order in which they come. */
static void put_dqds(struct buf *b, const struct poller_info *p, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t same = 0, before = 0;
        for (size_t j = 0; p[i].alive && j < count; j++) {
            bool is_same = p[j].alive && !strcmp(p[i].version, p[j].version);
            same += is_same;
            before += is_same && j < i;
        }
        if (same && !before)
            buf_printf(b, "%s%zu of %s", b->len ? ", " : "", same, p[i].version);
    }
    if (!b->len)
        buf_str(b, "none");
}

/* Columns that the schema does not have, or the account may not read, stay empty. */
static int ask(struct cmd_context *c, struct versions *v, struct err *err)
{
    struct poller_info *pollers;
    size_t count;

    int rc = cmd_open(c, CMD_DB, err);
    if (rc == 0)
        rc = db_connect(c->db, err);
    if (rc < 0)
        return rc;
    v->server = db_server(c->db);
    if (schema_read(c->db, &v->range, NULL) == 0 &&
        poller_store_list(c->db, &pollers, &count, NULL) == 0) {
        put_dqds(&v->dqds, pollers, count);
        poller_store_free(pollers, count);
    }
    return 0;
}

static int run(struct cmd_context *c, struct err *err)
{
    struct versions v = {
        .dq = PACKAGE_VERSION, .client = db_client(), .schema = schema_latest, .dqds = BUF_INIT};

    int rc = c->verbose ? ask(c, &v, err) : 0;
    if (rc == 0)
        out_record(&c->style, columns, MEM_COUNT(columns), &v);
    buf_done(&v.dqds);
    return rc;
}

const struct cmd cmd_version = {
    .name = "version",
    .level = CMD_NOTHING,
    .reads_only = true,
    .formats = OUT_NO_ID,
    .run = run,
};
