/*
 * db_orphan.c - see db_orphan.h. Invariant: a statement whose answer was lost has ended before its
 * outcome is looked up.
 */
#include "store/db/db_orphan.h"

#include "base/when.h"
#include "store/db/db_handle.h"

#include <stdio.h>
#include <time.h>

#define ORPHAN_WAIT_MS 3000
#define ER_NO_SUCH_THREAD 1094
#define ER_KILL_DENIED_ERROR 1095

/* The second in which the server was started, by its own clock. */
static int ask_start(struct db *db, int64_t *ret_s, struct err *err)
{
    unsigned long long before, uptime_s, after;
    int rc;

    do {
        before = uptime_s = after = 0;
        rc = db_handle_ask(db, "SELECT UNIX_TIMESTAMP()", &before, err);
        if (rc == 0)
            rc = db_handle_ask(db, "SHOW GLOBAL STATUS LIKE 'Uptime'", &uptime_s, err);
        if (rc == 0)
            rc = db_handle_ask(db, "SELECT UNIX_TIMESTAMP()", &after, err);
    } while (rc == 0 && before != after);
    *ret_s = (int64_t)(before - uptime_s);
    return rc;
}

/* What SHOW PROCESSLIST shows of a connection id. While a connection runs a trigger or a procedure,
 * it is shown as the definer's: only those with PROCESS see it, and those who may kill any
 * connection cannot tell it from another's that is busy. One that is idle runs nothing. */
enum { ORPHAN_UNSEEN, ORPHAN_OURS, ORPHAN_BUSY, ORPHAN_IDLE };
#define SEEN_AS "IF(o.user = s.user, 1, IF(o.command <> 'Sleep', 2, 3))"

/* A statement whose answer was lost may still run on the server, or wait in a buffer on the way
 * there. Its connection is killed, and must be gone, before its outcome is looked up. It is gone
 * only if the server says that it has no such thread, or if the id is another connection's: on a
 * server that was restarted since then, which has started its numbers again. A restart within a
 * second of db->orphan_since is not noticed by the server's uptime; then a connection of this
 * account may have the id. One of another account is not waited for if the server has started at
 * another second; that alone would not do, because the server's clock may have been set.
 *
 * On another server the id is somebody else's, or nobody's, which says nothing of the statement: it
 * is left to itself. */
int db_orphan_kill(struct db *db, struct err *err)
{
    char sql[240], kill[32];
    const struct timespec nap = {0, 5000000};
    int64_t deadline = when_steady() + ORPHAN_WAIT_MS;
    unsigned long long uptime_s = UINT32_MAX, seen;
    int64_t start_s = db->orphan_start_s;

    if (!db->orphan)
        return 0;
    if (!db->identity || db->identity != db->orphan_identity) { /* one address may have several */
        db->left++;
        goto gone;
    }
    if (mysql_thread_id(db->my) <= db->orphan)
        goto gone;
    int rc = db_handle_ask(db, "SHOW GLOBAL STATUS LIKE 'Uptime'", &uptime_s, err);
    if (rc < 0)
        return rc;
    if (when_steady() - (int64_t)(uptime_s + 1) * 1000 > db->orphan_since)
        goto gone;
    if (db->orphan_start_s && (rc = ask_start(db, &start_s, err)) < 0)
        return rc;
    const bool restarted = start_s != db->orphan_start_s;
    snprintf(sql, sizeof sql,
             "SELECT " SEEN_AS " FROM information_schema.processlist o"
             " JOIN information_schema.processlist s ON s.id = CONNECTION_ID() WHERE o.id = %lu",
             db->orphan);
    snprintf(kill, sizeof kill, "KILL %lu", db->orphan);
    for (;; nanosleep(&nap, NULL)) {
        seen = ORPHAN_UNSEEN;
        rc = db_handle_ask(db, sql, &seen, err);
        if (rc < 0)
            return rc;
        if (seen == ORPHAN_IDLE || (seen == ORPHAN_BUSY && restarted))
            goto gone;
        if (seen != ORPHAN_BUSY && mysql_query(db->my, kill)) {
            const unsigned number = mysql_errno(db->my);
            if (number == ER_NO_SUCH_THREAD || (number == ER_KILL_DENIED_ERROR && restarted))
                goto gone;
            if (number != ER_KILL_DENIED_ERROR) /* else it runs a trigger */
                return db_handle_fail(db, err);
        }
        if (when_steady() > deadline) {
            db_handle_drop(db);
            return err_set(err, ERR_UNAVAILABLE,
                           "%s: the connection that broke is still running a statement", db->at);
        }
    }
gone:
    db->orphan = 0;
    return 0;
}

int db_orphan_prepare(struct db *db, struct err *err)
{
    return db->lasts ? ask_start(db, &db->start_s, err) : 0;
}
