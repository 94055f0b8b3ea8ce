/*
 * doctor_server.c - see doctor_server.h. Invariant: nothing is changed.
 */
#include "cli/judge/doctor.h"

#include "base/mem.h"
#include "base/when.h"
#include "store/ask/health_store.h"
#include "store/ask/lock_store.h"
#include "store/db/db_connect.h"
#include "store/db/db_session.h"
#include "store/fleet/poller_store.h"
#include "store/row/settlement.h"
#include "store/schema/rights_store.h"
#include "store/schema/schema.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#define PACKET_SMALL ((size_t)1 << 20)
#define CLOCK_OFF_MS WHEN_SECOND
#define HOSTS_OFF_MS 500
#define NAMED 3 /* dqds in one message */

#define SETTING_NAME(name, variable) variable,
static const char *const setting_names[] = {DOCTOR_SETTINGS(SETTING_NAME)};

/* "" if the server has none. */
static const char *setting(const struct doctor *d, enum doctor_setting s)
{
    return d->settings[s] ? d->settings[s] : "";
}

static bool is_on(const struct doctor *d, enum doctor_setting s)
{
    const char *value = setting(d, s);
    return strcmp(value, "ON") == 0 || strcmp(value, "1") == 0;
}

static bool is_old(const struct db *db)
{
    return db_server_version(db) < (db_is_mariadb(db) ? 100500u : SCHEMA_OLDEST_MYSQL);
}

int doctor_server_connection(struct doctor *d, struct doctor_finding *f, struct err *err)
{
    struct schema_range schema = {0};
    struct health_clock clock = {0, 0};
    /* A locked table costs each check that reads it this time. */
    const struct db_session brief = {.lock_wait_s = 1, .table_wait_s = 1, .idle_s = 3600};
    struct err none;

    int rc = cmd_open(d->c, CMD_DB, err);
    if (rc == 0) {
        db_session_set(d->c->db, &brief);
        rc = db_connect(d->c->db, err);
    }
    if (rc == 0)
        rc = health_store_settings(d->c->db, setting_names, DOCTOR_SETTING_COUNT, d->settings, err);
    if (rc == 0)
        rc = health_store_clock(d->c->db, &clock, err);
    if (rc < 0) {
        doctor_find(f, DOCTOR_BAD, "%s", err->text);
        return 0;
    }
    d->stage = DOCTOR_SERVER;
    bool read_only = is_on(d, DOCTOR_READ_ONLY);
    if (is_old(d->c->db))
        doctor_find(f, DOCTOR_BAD, "%s is too old: MariaDB 10.5 or MySQL 8.0.13 is needed",
                    db_server(d->c->db));
    if (read_only)
        doctor_find(
            f, DOCTOR_BAD,
            "%s is read-only: tasks can be neither added nor run; name its primary first in [mysql] host",
            db_server(d->c->db));
    (void)!schema_read(d->c->db, &schema, &none);
    doctor_find(f, DOCTOR_OK, "%s, writable, schema %d, %.1f ms", db_server(d->c->db),
                schema.version, (double)clock.trip_us / 1000);
    return 0;
}

int doctor_server_durability(struct doctor *d, struct doctor_finding *f,
                             struct err *err __attribute__((unused)))
{
    const char *flush = setting(d, DOCTOR_FLUSH), *sync = setting(d, DOCTOR_SYNC_BINLOG),
               *twice = setting(d, DOCTOR_DOUBLEWRITE), *forced = setting(d, DOCTOR_FORCE_RECOVERY);
    /* With a binary log, 1 flushes what is prepared; what is not in that log then is rolled back by
     * a recovery. 3, of MariaDB alone, flushes the commit, too. */
    bool at_prepare = strcmp(flush, "1") == 0, at_commit = strcmp(flush, "3") == 0;

    if (!*flush || !*twice)
        doctor_find(f, DOCTOR_UNKNOWN, "not known: the server has no setting %s",
                    setting_names[*flush ? DOCTOR_DOUBLEWRITE : DOCTOR_FLUSH]);
    if (*flush && !at_commit && !at_prepare)
        doctor_find(
            f, DOCTOR_BAD,
            "innodb_flush_log_at_trx_commit = %s: a power failure may lose tasks; set it to 1",
            flush);
    if (strcmp(twice, "OFF") == 0 || strcmp(twice, "DETECT_ONLY") == 0)
        doctor_find(f, DOCTOR_BAD,
                    "innodb_doublewrite = %s: a power failure may destroy pages; set it to ON",
                    twice);
    if (*forced && strcmp(forced, "0") != 0)
        doctor_find(
            f, DOCTOR_BAD,
            "innodb_force_recovery = %s: a server that is being rescued may refuse or lose tasks; start it without",
            forced);
    if (is_on(d, DOCTOR_LOG_BIN) && strcmp(sync, "1") != 0)
        doctor_find(
            f, at_commit ? DOCTOR_WARN : DOCTOR_BAD,
            at_commit
                ? "sync_binlog = %s: after a power failure, replicas may lack tasks; set it to 1"
                : "sync_binlog = %s: a power failure may lose tasks; set it to 1",
            sync);
    doctor_find(f, DOCTOR_OK, "each commit is flushed, pages are written twice%s",
                is_on(d, DOCTOR_LOG_BIN) ? ", the binary log is flushed" : "");
    return 0;
}

int doctor_server_isolation(struct doctor *d, struct doctor_finding *f,
                            struct err *err __attribute__((unused)))
{
    const char *format = setting(d, DOCTOR_BINLOG_FORMAT);

    if (!is_on(d, DOCTOR_LOG_BIN)) {
        doctor_find(f, DOCTOR_OK, "READ COMMITTED; no binary log");
        return 0;
    }
    if (!*format)
        doctor_find(f, DOCTOR_UNKNOWN, "not known: the server has no setting binlog_format");
    if (strcmp(format, "STATEMENT") == 0)
        doctor_find(
            f, DOCTOR_BAD,
            "binlog_format = STATEMENT refuses writes under READ COMMITTED (error 1665); set it to ROW");
    doctor_find(f, DOCTOR_OK, "READ COMMITTED; binlog_format = %s", format);
    return 0;
}

int doctor_server_packet(struct doctor *d, struct doctor_finding *f, struct err *err)
{
    size_t bytes = 0;

    if (db_max_packet(d->c->db, &bytes, err) < 0)
        return err->code;
    bool starts = bytes >= SETTLEMENT_PACKET_LEAST;
    if (bytes < PACKET_SMALL)
        doctor_find(f, starts ? DOCTOR_WARN : DOCTOR_BAD,
                    "max_allowed_packet = %zu: %s; set it to 16 MB or more", bytes,
                    starts ? "longer bodies are refused" : "dqd does not start");
    doctor_find(f, DOCTOR_OK, "max_allowed_packet = %zu: bodies up to %zu MB", bytes, bytes >> 20);
    return 0;
}

/* The clocks of the live dqds, as they have written them down. Returns how many are known, and the
 * largest difference. */
static size_t check_dqds(struct doctor *d, struct doctor_finding *f, int64_t *ret_most_ms)
{
    struct poller_info *p = NULL;
    size_t count = 0, known = 0, unknown = 0, off = 0, unseen = 0;
    char text[WHEN_TEXT_SIZE];
    struct err err;

    *ret_most_ms = 0;
    if (poller_store_list(d->c->db, &p, &count, &err) < 0)
        doctor_find_failed(f, &err);
    for (size_t i = 0; i < count; i++) {
        int64_t ahead_ms = p[i].clock_ahead_ms, by_ms = llabs(MAX(ahead_ms, -INT64_MAX));
        if (p[i].ahead && unseen++ == 0)
            doctor_find(f, DOCTOR_WARN,
                        "dqd %" PRIu32
                        " on %s was last seen at a time that has not come: the server's "
                        "clock was ahead; the next live dqd corrects that, and leases made then",
                        p[i].pid, p[i].host);
        if (!p[i].alive || ahead_ms == POLLER_CLOCK_NONE) {
            unknown += p[i].alive;
            continue;
        }
        known++;
        *ret_most_ms = MAX(*ret_most_ms, by_ms);
        if (by_ms > CLOCK_OFF_MS && off++ < NAMED)
            doctor_find(f, DOCTOR_WARN,
                        "the clock of %s, where dqd %" PRIu32 " runs, is %s %s the server's",
                        p[i].host, p[i].pid, when_format_rough(text, by_ms),
                        ahead_ms < 0 ? "behind" : "ahead of");
    }
    if (off > NAMED)
        doctor_find(f, DOCTOR_WARN, "and so are those of %zu more dqds", off - NAMED);
    if (unknown)
        doctor_find(f, DOCTOR_UNKNOWN, "%zu of %zu dqds have not recorded their clocks yet",
                    unknown, known + unknown);
    poller_store_free(p, count);
    return known;
}

/* After a failover, the clock of another host of the list decides. */
static void compare_hosts(const struct doctor *d, struct doctor_finding *f, int64_t ahead_ms)
{
    char off[WHEN_TEXT_SIZE];
    MEM_LOCAL char *hosts = mem_strdup(d->c->conf->mysql.host);
    char *rest = hosts, *host;

    while ((host = strtok_r(rest, ", \t", &rest))) {
        struct conf_mysql conf = d->c->conf->mysql;
        struct health_clock clock = {0, 0};
        struct err err;
        conf.host = host;
        struct db *db = db_new(&conf);
        int64_t by_ms = 0;

        if (db_connect(db, &err) < 0 || health_store_clock(db, &clock, &err) < 0)
            doctor_find(f, DOCTOR_UNKNOWN, "the clock of %s is not known: %s", host, err.text);
        else
            by_ms = clock.ahead_ms - ahead_ms;
        if (llabs(by_ms) > HOSTS_OFF_MS + clock.trip_us / 2000)
            doctor_find(
                f, DOCTOR_WARN,
                "the clock of %s is %s %s that of the server in use: after a failover, tasks would run at other times",
                host, when_format_rough(off, llabs(by_ms)), by_ms > 0 ? "ahead of" : "behind");
        db_free(db);
    }
}

int doctor_server_clock(struct doctor *d, struct doctor_finding *f, struct err *err)
{
    struct health_clock clock;
    char off[WHEN_TEXT_SIZE], most[WHEN_TEXT_SIZE];
    int64_t most_ms = 0;

    if (health_store_clock(d->c->db, &clock, err) < 0)
        return err->code;
    when_format_rough(off, llabs(clock.ahead_ms));
    if (llabs(clock.ahead_ms) > CLOCK_OFF_MS + clock.trip_us / 2000)
        doctor_find(
            f, DOCTOR_WARN,
            "this host is %s %s the server, whose clock decides when tasks run: logs of this host show other times",
            off, clock.ahead_ms > 0 ? "behind" : "ahead of");
    if (strpbrk(d->c->conf->mysql.host, ", \t"))
        compare_hosts(d, f, clock.ahead_ms);
    size_t dqds = d->stage == DOCTOR_TABLES ? check_dqds(d, f, &most_ms) : 0;
    if (dqds)
        doctor_find(f, DOCTOR_OK, "this host and the server differ by %s, %zu dqd%s by at most %s",
                    off, dqds, dqds == 1 ? "" : "s", when_format_rough(most, most_ms));
    else
        doctor_find(f, DOCTOR_OK, "this host and the server differ by %s", off);
    return 0;
}

int doctor_server_transactions(struct doctor *d, struct doctor_finding *f, struct err *err)
{
    struct lock_holder oldest;
    char age[WHEN_TEXT_SIZE];

    int rc = lock_store_oldest(d->c->db, &oldest, err);
    if (rc == ERR_DENIED)
        return err_set(err, rc, "this account lacks the right PROCESS");
    if (rc < 0)
        return rc;
    when_format_rough(age, oldest.age_s * WHEN_SECOND);
    const bool old = oldest.who[0] && oldest.age_s * WHEN_SECOND >= d->old_ms;
    if (old && !oldest.connection)
        doctor_find(
            f, DOCTOR_WARN,
            "a prepared XA transaction has been open for %s: its locks stay until XA COMMIT or XA ROLLBACK (XA RECOVER lists it)",
            age);
    else if (old)
        doctor_find(
            f, DOCTOR_WARN,
            "connection %" PRIu64
            ", %s, has had a transaction open for %s: its snapshot slows every claim; end it, or: KILL %" PRIu64,
            oldest.connection, oldest.who, age, oldest.connection);
    if (oldest.who[0])
        doctor_find(f, DOCTOR_OK, "the oldest is open for %s", age);
    else
        doctor_find(f, DOCTOR_OK, "none is open");
    return 0;
}

int doctor_server_rights(struct doctor *d, struct doctor_finding *f, struct err *err)
{
    struct buf missing[RIGHTS_ROLE_COUNT];
    BUF_LOCAL struct buf able = BUF_INIT, unable = BUF_INIT;

    for (int r = 0; r < RIGHTS_ROLE_COUNT; r++)
        missing[r] = (struct buf)BUF_INIT;
    int rc = rights_store_missing(d->c->db, missing, err);
    if (rc < 0)
        doctor_find(f, DOCTOR_BAD, "%s", err->text);
    for (int r = 0; r < RIGHTS_ROLE_COUNT; r++) {
        if (!missing[r].len)
            buf_printf(&able, "%s%s", able.len ? ", " : "", rights_role_names[r]);
        else
            buf_printf(&unable, "%s%s lacks %s", unable.len ? "; " : "", rights_role_names[r],
                       missing[r].data);
        buf_done(&missing[r]);
    }
    if (!able.len)
        doctor_find(f, DOCTOR_BAD,
                    "this account can do the work of no role of sql/grants.sql.example: %s",
                    unable.data);
    doctor_find(f, DOCTOR_OK, "enough for %s%s%s", able.data, unable.len ? "; " : "",
                unable.len ? unable.data : "");
    return 0;
}
