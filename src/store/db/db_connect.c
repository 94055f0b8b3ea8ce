/*
 * db_connect.c - making the connection: hosts in order, the session's settings.
 *
 * Invariant: a new connection has every setting that the store relies on, and no statement of an
 * earlier connection of this handle still runs on that server.
 */
#include "store/db/db_connect.h"
#include "base/buf.h"
#include "base/interrupt.h"
#include "base/when.h"
#include "conf/conf_file.h"
#include "store/db/db_error.h"
#include "store/db/db_handle.h"
#include "store/db/db_orphan.h"
#include "store/db/db_session.h"
#include "store/db/db_tls.h"

#if HAVE_DECL___NSS_CONFIGURE_LOOKUP
#include <nss.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <time.h>
#include <unistd.h>

#define PATIENT_NAP_MS 50
/* A host that is down may take connect_timeout to find out, and a screen stands still meanwhile. */
#define READ_ONLY_MS (20 * WHEN_SECOND)
#define PATIENT_NAP_MOST_MS 1000

/* The client library always begins by looking up the port of the service "mysql", even if it does
 * not need it. Limiting the look-up to /etc/services, whatever nsswitch.conf says, saves each dq
 * add 0.2 ms for loading modules and asking daemons. */
static void limit_service_lookup(void)
{
#if HAVE_DECL___NSS_CONFIGURE_LOOKUP
    static bool done;

    if (!done)
        __nss_configure_lookup("services", "files");
    done = true;
#endif
}

static unsigned seconds(int64_t ms)
{
    return (unsigned)((ms + 999) / 1000);
}

static int set_options(const struct conf_mysql *c, const char *host, unsigned port, MYSQL *my,
                       struct err *err)
{
    const unsigned off = 0, connect = seconds(c->connect_timeout_ms),
                   rd = seconds(c->read_timeout_ms), wr = seconds(c->write_timeout_ms);
    const unsigned long packet = DB_HANDLE_PACKET_MAX;

    mysql_options(my, MYSQL_OPT_LOCAL_INFILE, &off);
    mysql_options(my, MYSQL_SET_CHARSET_NAME, "utf8mb4");
    mysql_options(my, MYSQL_OPT_CONNECT_TIMEOUT, &connect);
    mysql_options(my, MYSQL_OPT_READ_TIMEOUT, &rd);
    mysql_options(my, MYSQL_OPT_WRITE_TIMEOUT, &wr);
    mysql_options(my, MYSQL_OPT_MAX_ALLOWED_PACKET, &packet);
    if (conf_or_null(c->defaults_file)) {
        int fd = conf_file_open(c->defaults_file, "MySQL option file", err);
        if (fd < 0)
            return fd;
        close(fd);
        mysql_options(my, MYSQL_READ_DEFAULT_FILE, c->defaults_file);
        mysql_options(my, MYSQL_READ_DEFAULT_GROUP, "dq");
    }
    return db_tls_options(c, host, port, my, err);
}

static int no_tls(const struct db *db, struct err *err)
{
    return err_set(err, ERR_CONFIG,
                   "%s: the server does not offer TLS, and tls in [mysql] requires it", db->at);
}

/* The operator's own statement. It runs before the settings that the store relies on. */
static int run_init_command(struct db *db, const char *database, struct err *err)
{
    int rc = db_handle_run(db, db->conf->init_command, err);
    const unsigned number = db->my ? mysql_errno(db->my) : 0;

    if (rc == 0)
        mysql_free_result(mysql_store_result(db->my));            /* it may be a SELECT */
    if (rc == 0 && database && mysql_select_db(db->my, database)) /* undo a USE */
        return db_handle_fail(db, err);
    if (rc == 0)
        return 0;
    err_prefix(err, "init_command in [mysql]");
    if (rc == ERR_FATAL && db_error_of_statement(number)) /* the operator's statement is wrong */
        rc = ERR_CONFIG;
    if (err)
        err->code = rc;
    return rc;
}

static int set_up(struct db *db, const char *database, struct err *err)
{
    int rc = 0;

    /* A unix socket needs no TLS. */
    if (db->conf->tls >= CONF_TLS_REQUIRED && !mysql_get_ssl_cipher(db->my) &&
        strstr(mysql_get_host_info(db->my), "TCP"))
        return no_tls(db, err);
    if (conf_or_null(db->conf->init_command))
        rc = run_init_command(db, database, err);
    if (rc == 0)
        rc = db_session_set_up(db, err);
    if (rc == 0)
        rc = db_orphan_kill(db, err);
    return rc < 0 ? rc : db_orphan_prepare(db, err);
}

static void note_server(struct db *db)
{
    const char *info = mysql_get_server_info(db->my);
    unsigned major = 0, minor = 0, patch = 0;

    if (!strncmp(info, "5.5.5-", 6)) /* MariaDB's prefix for old clients */
        info += 6;
    sscanf(info, "%u.%u.%u", &major, &minor, &patch);
    db->mariadb = strstr(info, "MariaDB");
    db->version = major * 10000 + minor * 100 + patch;
    snprintf(db->server, sizeof db->server, "%s %u.%u.%u at %s", db->mariadb ? "MariaDB" : "MySQL",
             major, minor, patch, db->at);
}

/* No statement was under way yet, so another host, or a later attempt, is as good. */
static int not_made(const struct db *db, int64_t since, struct err *err)
{
    const struct conf_mysql *c = db->conf;
    int64_t took = when_steady() - since, patience = c->connect_timeout_ms < c->read_timeout_ms
                                                         ? c->connect_timeout_ms
                                                         : c->read_timeout_ms;

    if (took < patience)
        return err_set(err, ERR_UNAVAILABLE,
                       "%s: the connection broke while it was being established; " DB_ERROR_WHERE,
                       db->at);
    return err_set(err, ERR_UNAVAILABLE, "%s: no answer within %u s; " DB_ERROR_WHERE, db->at,
                   seconds(took - 999));
}

/* A server that requires TLS answers a connection without it as it answers a wrong password:
 * MariaDB always, MySQL if only the account requires it. */
static void suggest_tls(struct err *err)
{
    const struct err denied = err ? *err : (struct err){0};

    err_set(err, denied.code,
            "%s; if the server or the account requires TLS (require_secure_transport, REQUIRE SSL),"
            " set tls = required in [mysql]",
            denied.text);
}

static int connect_once(struct db *db, const char *host, unsigned port, const char *database,
                        struct err *err)
{
    const struct conf_mysql *c = db->conf;
    int64_t since = when_steady();
    bool stripped;
    int rc;

    if (db_tls_local(host, port))
        snprintf(db->at, sizeof db->at, "%s", conf_or_null(c->socket) ? c->socket : "localhost");
    else
        snprintf(db->at, sizeof db->at, "%s:%u", host, port);
    limit_service_lookup();
    db->my = mysql_init(NULL);
    if (!db->my)
        return err_set(err, ERR_SYSTEM, "out of memory");
    rc = set_options(c, host, port, db->my, err);
    if (rc < 0)
        goto out;
    if (!db_tls_connect(db->my, c, host, port, db->password, database, &stripped)) {
        rc = stripped ? no_tls(db, err)
                      : db_error_connect(err, mysql_errno(db->my), mysql_error(db->my), db->at,
                                         c->tls >= CONF_TLS_VERIFY_CA);
        if (rc == ERR_DENIED && host && c->tls == CONF_TLS_DISABLED)
            suggest_tls(err);
        goto out;
    }
    db->connected_at = when_steady();
    db_handle_notice_silence(db);
    note_server(db);
    rc = set_up(db, database, err);
out:
    if (rc == ERR_LOST)
        rc = not_made(db, since, err);
    if (rc < 0) {
        db_handle_drop(db);
        rc = db_error_away(rc, err);
    }
    return rc;
}

/* The server has refused the password. True: password_file has another one by now. */
static bool secret_changed(struct db *db, struct err *err)
{
    const char *path = conf_or_null(db->conf->password_file);
    const struct err denied = err ? *err : (struct err){0};
    struct err why = {0};
    char *secret = NULL;

    if (!path)
        return false;
    if (conf_file_read_secret(path, &secret, &why) < 0) {
        err_set(err, denied.code, "%.*s; if the password was changed, restart this program: %s",
                (int)strcspn(denied.text, ";"), denied.text, why.text);
        return false;
    }
    const bool changed = strcmp(secret, db->password) != 0;
    conf_file_wipe_secret(changed ? db->password : secret);
    if (changed)
        db->password = secret;
    return changed;
}

/* Connects to one host. database NULL: selects none. */
static int connect_host(struct db *db, const char *host, unsigned port, const char *database,
                        struct err *err)
{
    int rc = connect_once(db, host, port, database, err);

    if (rc == ERR_DENIED && secret_changed(db, err))
        rc = connect_once(db, host, port, database, err);
    return rc;
}

/* Takes the next host of "db1, db2:3307, [::1]:3306"; false at the end. An IPv6 address without
 * brackets has no port, nor has "localhost", the local socket: 0. */
static bool next_host(const char **list, int default_port, char *host, size_t size,
                      unsigned *ret_port)
{
    const char *p = *list + strspn(*list, ", \t");
    size_t len = strcspn(p, ", \t"), name = len;
    const char *end = p + len, *colon = memchr(p, ':', len),
               *bracket = *p == '[' ? memchr(p, ']', len) : NULL;

    *list = end;
    *ret_port = (unsigned)default_port;
    if (bracket) {
        colon = bracket + 1 < end && bracket[1] == ':' ? bracket + 1 : NULL;
        name = (size_t)(bracket - ++p);
    } else if (colon && memchr(colon + 1, ':', (size_t)(end - colon - 1))) {
        colon = NULL;
    } else if (colon) {
        name = (size_t)(colon - p);
    }
    if (colon)
        *ret_port = (unsigned)strtoul(colon + 1, NULL, 10);
    snprintf(host, size, "%.*s", (int)name, p);
    if (!colon && db_tls_local(host, 0))
        *ret_port = 0;
    return len > 0;
}

/* One of several hosts: 0 if it can be used without reservation. If not, *ret_spare is whether it
 * is better than none. */
static int check_fit(struct db *db, bool *ret_spare, struct err *err)
{
    unsigned long long read_only = 0;
    int64_t since = when_steady();
    /* FROM: a node of Galera that has lost its cluster refuses to read tables, but answers all
     * else. */
    int rc = db_handle_ask(
        db, "SELECT @@global.read_only OR @@global.innodb_read_only FROM (SELECT 1) AS t",
        &read_only, err);

    const bool stalled = !strcmp(db->at, db->stalled_at);
    db->read_only = rc == 0 && read_only;
    *ret_spare = rc == 0 && (read_only ? db->reader : stalled);
    if (db->read_only)
        rc = err_set(err, ERR_UNAVAILABLE, "%s: the server is read-only at the moment", db->at);
    else if (rc == 0 && stalled)
        rc = err_set(err, ERR_UNAVAILABLE, "%s: a statement timed out on this server", db->at);
    else if (rc == ERR_LOST)
        rc = not_made(db, since, err);
    if (rc < 0) {
        db_handle_drop(db);
        rc = db_error_away(rc, err);
    }
    return rc;
}

/* Adds why a host cannot be used, without the advice, which would be repeated for each host, as
 * would be what is not a fault of this host. */
static void add_reason(struct buf *reasons, const struct err *err)
{
    const char *advice = strstr(err->text, "; " DB_ERROR_WHERE);
    const size_t len = advice ? (size_t)(advice - err->text) : strlen(err->text);

    if (reasons->len && memmem(reasons->data, reasons->len, err->text, len))
        return;
    if (reasons->len)
        buf_str(reasons, "; ");
    buf_add(reasons, err->text, len);
}

/* Connects to the first host that check_fit accepts; if there is none, to one on which a statement
 * timed out or, for a reader, to one that is read-only. A host that refuses us for good costs no
 * more than itself: it may have been reinstalled without our account. */
static int connect_list(struct db *db, const char *database, struct err *err)
{
    const struct conf_mysql *c = db->conf;
    const char *list = c->host;
    char host[256], spare[256] = "";
    BUF_LOCAL struct buf reasons = BUF_INIT;
    struct err why = {0};
    unsigned port, spare_port = 0;
    bool spare_reads_only = false;
    int rc = -1, failed = 0; /* ERR_UNAVAILABLE if one of them may come back */

    while (rc < 0 && next_host(&list, c->port, host, sizeof host, &port)) {
        bool serves = false;
        db->read_only = false;
        rc = connect_host(db, host, port, database, &why);
        if (rc == 0)
            rc = check_fit(db, &serves, &why);
        if (serves && (!*spare || spare_reads_only)) {
            memcpy(spare, host, sizeof spare);
            spare_port = port;
            spare_reads_only = db->read_only;
        }
        if (rc < 0)
            add_reason(&reasons, &why);
        if (rc < 0 && (!failed || rc == ERR_UNAVAILABLE))
            failed = rc;
    }
    if (rc < 0 && *spare) {
        rc = connect_host(db, spare, spare_port, database, err);
        db->read_only = rc == 0 && spare_reads_only;
    } else if (rc < 0) {
        rc = err_set(err, failed, "none of the hosts can be used: %.*s", (int)reasons.len,
                     reasons.data);
    }
    if (rc == 0)
        db->stalled_at[0] = '\0';
    return rc;
}

int db_connect_load_secret(struct db *db, struct err *err)
{
    const char *path = conf_or_null(db->conf->password_file);

    if (db->password_loaded)
        return 0;
    if (path) {
        int rc = conf_file_read_secret(path, &db->password, err);
        if (rc < 0)
            return rc;
    }
    db->password_loaded = true;
    return 0;
}

static int connect_any(struct db *db, const char *database, struct err *err)
{
    const struct conf_mysql *c = db->conf;
    const char *list = conf_or_null(c->host);
    char host[256];
    unsigned port, hosts = 0;
    int rc = db_connect_load_secret(db, err);

    if (rc < 0)
        return rc;
    db->read_only = false;
    if (!list)
        return connect_host(db, NULL, 0, database, err);
    for (const char *rest = list; next_host(&rest, c->port, host, sizeof host, &port);)
        hosts++;
    if (hosts > 1)
        return connect_list(db, database, err);
    if (!next_host(&list, c->port, host, sizeof host, &port))
        return err_set(err, ERR_CONFIG, "host in [mysql] names no host");
    return connect_host(db, host, port, database, err);
}

void db_connect_for_reading(struct db *db, bool yes)
{
    db->reader = yes;
}

void db_connect_seek_writable(struct db *db)
{
    if (db_connect_is_read_only(db) && when_steady() - db->connected_at >= READ_ONLY_MS)
        db_handle_drop(db);
}

unsigned db_connect_left(const struct db *db)
{
    return db->left;
}

bool db_connect_is_read_only(const struct db *db)
{
    return db->my && db->read_only;
}

void db_connect_patiently(struct db *db, int64_t ms, void (*away)(const struct err *why, void *arg),
                          void *arg)
{
    db->patience_ms = ms;
    db->patience_end = 0;
    db->away = away;
    db->away_arg = arg;
}

bool db_connect_again(struct db *db, int rc, struct err *err)
{
    char text[WHEN_TEXT_SIZE];
    int64_t now = when_steady(), nap_ms;

    if ((rc != ERR_UNAVAILABLE && rc != ERR_LOST) || !db->patience_ms)
        return false;
    if (!db->patience_end) {
        db->patience_end = now + db->patience_ms;
        db->nap_ms = PATIENT_NAP_MS;
        if (db->away)
            db->away(err, db->away_arg);
    } else if (now >= db->patience_end || interrupt_asked()) {
        err_set(err, rc, "%s; tried for %s", err->text,
                when_format_duration(text, db->patience_ms));
        db->patience_ms = 0;
        return false;
    }
    /* spread: many producers may have lost the server at the same instant */
    nap_ms = db->nap_ms / 2 + (now * getpid()) % db->nap_ms;
    nap_ms = MIN(nap_ms, db->patience_end - now);
    nanosleep(&(struct timespec){nap_ms / 1000, nap_ms % 1000 * 1000000}, NULL);
    db->nap_ms = MIN(2 * db->nap_ms, PATIENT_NAP_MOST_MS);
    return true;
}

int db_connect(struct db *db, struct err *err)
{
    int rc;

    if (db->my)
        return 0;
    if (db->in_tx) /* its rest must not run on a new connection */
        return err_set(err, ERR_LOST, "%s: the connection broke within a transaction", db->at);
    do
        rc = connect_any(db, conf_or_null(db->conf->database), err);
    while (rc < 0 && db_connect_again(db, rc, err));
    return rc;
}

int db_connect_create(struct db *db, struct err *err)
{
    BUF_LOCAL struct buf sql = BUF_INIT;
    const char *name = conf_or_null(db->conf->database);

    if (db->my)
        return 0;
    int rc = connect_any(db, NULL, err);
    if (rc < 0 || !name)
        return rc;
    if (mysql_select_db(db->my, name)) {
        buf_str(&sql, "CREATE DATABASE IF NOT EXISTS `");
        for (const char *p = name; *p; p++) {
            if (*p == '`')
                buf_chr(&sql, '`');
            buf_chr(&sql, *p);
        }
        buf_str(&sql, "` CHARACTER SET utf8mb4 COLLATE utf8mb4_bin");
        if (mysql_errno(db->my) != 1049 /* ER_BAD_DB_ERROR */ ||
            mysql_real_query(db->my, sql.data, sql.len) || mysql_select_db(db->my, name)) {
            rc = db_handle_fail(db, err);
            db_handle_drop(db); /* without a database it is of no use to others */
        }
    }
    return rc;
}
