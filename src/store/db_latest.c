/*
 * db_latest.c - reads that see what was committed on another server of a cluster.
 *
 * Invariant: between db_latest_begin and db_latest_end a read returns only after its server has
 * applied everything that the cluster had committed when the read began. Other reads do not pay for
 * this.
 */
#include "store/db_latest.h"
#include "store/columns.h"
#include "store/db.h"
#include "store/db_connect.h"
#include "store/db_handle.h"

#include <string.h>

/* The variables exist if the cluster's software does: in MariaDB with Galera, and in MySQL while
 * the plugin of Group Replication is loaded. A value set by init_command is restored afterwards. */
#define GALERA_BEGIN                                                                               \
    "SET @dq_sync_wait = @@SESSION.wsrep_sync_wait, SESSION wsrep_sync_wait = @@SESSION.wsrep_sync_wait | 1"
#define GALERA_END "SET SESSION wsrep_sync_wait = @dq_sync_wait"
#define GROUP_BEGIN                                                                                \
    "SET @dq_consistency = @@SESSION.group_replication_consistency, SESSION group_replication_consistency = 'BEFORE'"
#define GROUP_END "SET SESSION group_replication_consistency = @dq_consistency"

static int see_setting(const struct db_rows *r, void *arg, struct err *err)
{
    enum db_cluster *found = arg;

    (void)err;
    if (!strcmp(db_string(r, COLUMNS_SHOW_NAME), "wsrep_sync_wait"))
        *found = DB_CLUSTER_GALERA;
    else if (!strcmp(db_string(r, COLUMNS_SHOW_NAME), "group_replication_consistency"))
        *found = DB_CLUSTER_GROUP;
    return 0;
}

static int look_for_cluster(struct db *db, struct err *err)
{
    struct buf sql = BUF_INIT;
    enum db_cluster found = DB_CLUSTER_NONE;

    buf_str(
        &sql,
        "SHOW SESSION VARIABLES WHERE Variable_name IN ('wsrep_sync_wait', 'group_replication_consistency')");
    int rc = db_each(db, &sql, COLUMNS_SHOW, see_setting, &found, err);
    buf_done(&sql);
    if (rc == 0)
        db->cluster = found;
    return rc;
}

int db_latest_begin(struct db *db, struct err *err)
{
    int rc = db_connect(db, err);

    if (rc == 0 && db->cluster == DB_CLUSTER_UNKNOWN)
        rc = look_for_cluster(db, err);
    if (rc == 0 && db->cluster == DB_CLUSTER_GALERA)
        rc = db_handle_run(db, GALERA_BEGIN, err);
    if (rc == 0 && db->cluster == DB_CLUSTER_GROUP)
        rc = db_handle_run(db, GROUP_BEGIN, err);
    return rc;
}

void db_latest_end(struct db *db)
{
    const char *sql = db->cluster == DB_CLUSTER_GALERA  ? GALERA_END
                      : db->cluster == DB_CLUSTER_GROUP ? GROUP_END
                                                        : NULL;

    if (db->my && sql && mysql_query(db->my, sql))
        db_handle_drop(db); /* the next connection begins without it */
}
