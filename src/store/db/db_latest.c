/*
 * db_latest.c - reads that see what was committed on another server of a cluster.
 *
 * Invariant: between db_latest_begin and db_latest_end a read returns only after its server has
 * applied everything that the cluster had committed when the read began. Other reads do not pay for
 * this.
 */
#include "store/db/db_latest.h"
#include "store/db/columns.h"
#include "store/db/db.h"
#include "store/db/db_connect.h"
#include "store/db/db_handle.h"

#include <stdio.h>
#include <string.h>

/* What makes a session wait. The variable exists if the cluster's software does: in MariaDB with
 * Galera, and in MySQL while the plugin of Group Replication is loaded. A value set by init_command
 * is restored afterwards. */
static const struct waiting {
    const char *variable, *value;
} waitings[] = {
    [DB_CLUSTER_GALERA] = {"wsrep_sync_wait", "@@SESSION.wsrep_sync_wait | 1"},
    [DB_CLUSTER_GROUP] = {"group_replication_consistency", "'BEFORE'"},
};

#define WAITINGS (sizeof waitings / sizeof *waitings)

static void see_setting(const struct db_rows *r, void *arg)
{
    enum db_cluster *found = arg;

    for (size_t i = DB_CLUSTER_GALERA; i < WAITINGS; i++)
        if (!strcmp(db_string(r, COLUMNS_SHOW_NAME), waitings[i].variable))
            *found = (enum db_cluster)i;
}

static int look_for_cluster(struct db *db, struct err *err)
{
    BUF_LOCAL struct buf sql = BUF_INIT;
    enum db_cluster found = DB_CLUSTER_NONE;

    buf_str(&sql, "SHOW SESSION VARIABLES WHERE Variable_name IN (");
    for (size_t i = DB_CLUSTER_GALERA; i < WAITINGS; i++)
        buf_printf(&sql, "%s'%s'", i > DB_CLUSTER_GALERA ? ", " : "", waitings[i].variable);
    buf_chr(&sql, ')');
    int rc = db_all(db, &sql, COLUMNS_SHOW, see_setting, &found, err);
    if (rc == 0)
        db->cluster = found;
    return rc;
}

int db_latest_begin(struct db *db, struct err *err)
{
    char sql[200];
    int rc = db_connect(db, err);

    db->latest = true;
    if (rc == 0 && db->cluster == DB_CLUSTER_UNKNOWN)
        rc = look_for_cluster(db, err);
    if (rc < 0 || db->cluster < DB_CLUSTER_GALERA)
        return rc;
    const struct waiting *w = &waitings[db->cluster];
    snprintf(sql, sizeof sql, "SET @dq_latest = @@SESSION.%s, SESSION %s = %s", w->variable,
             w->variable, w->value);
    return db_handle_run(db, sql, err);
}

int db_latest_begin_anywhere(struct db *db, struct err *err)
{
    const bool reader = db->reader;

    db->reader = true;
    int rc = db_latest_begin(db, err);
    db->reader = reader;
    return rc;
}

void db_latest_end(struct db *db)
{
    char sql[80];

    db->latest = false;
    if (!db->my || db->cluster < DB_CLUSTER_GALERA)
        goto out;
    snprintf(sql, sizeof sql, "SET SESSION %s = @dq_latest", waitings[db->cluster].variable);
    if (mysql_query(db->my, sql))
        db_handle_drop(db); /* the next connection begins without it */
out:
    if (db->read_only && !db->reader)
        db_handle_drop(db);
}
