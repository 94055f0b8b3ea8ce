/*
 * db_tls.c - how a connection is encrypted.
 *
 * Invariant: if the settings require TLS, nothing is sent to a server that does not offer it or
 * whose certificate fails the required check. Without TLS no password leaves the host in the
 * clear.
 */
#include "store/db/db_tls.h"
#include "base/when.h"

#include <errmsg.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#if HAVE_DECL_MYSQL_OPT_SSL_MODE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>
#endif

#ifdef HAVE_MY_BOOL
typedef my_bool client_bool;
#else
typedef bool client_bool;
#endif

/* The libraries request TLS in different ways, their defaults vary by version, and an option file
 * may contain other settings; so every option is set. */
static void set_tls(const struct conf_mysql *c, enum conf_tls tls, MYSQL *my)
{
    const bool on = tls != CONF_TLS_DISABLED;

    mysql_options(my, MYSQL_OPT_SSL_KEY, on ? conf_or_null(c->tls_key) : NULL);
    mysql_options(my, MYSQL_OPT_SSL_CERT, on ? conf_or_null(c->tls_cert) : NULL);
    mysql_options(my, MYSQL_OPT_SSL_CA, tls >= CONF_TLS_VERIFY_CA ? c->tls_ca : NULL);
    mysql_options(my, MYSQL_OPT_SSL_CAPATH, NULL);
#if HAVE_DECL_MYSQL_OPT_SSL_MODE
    static const unsigned modes[] = {SSL_MODE_DISABLED, SSL_MODE_PREFERRED, SSL_MODE_REQUIRED,
                                     SSL_MODE_VERIFY_CA, SSL_MODE_VERIFY_IDENTITY};
    mysql_options(my, MYSQL_OPT_SSL_MODE, &modes[tls]);
#else
    client_bool enforce = on, verify = tls == CONF_TLS_VERIFY_IDENTITY;
    mysql_options(my, MYSQL_OPT_SSL_ENFORCE, &enforce);
    mysql_options(my, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &verify);
#endif
#if HAVE_DECL_MYSQL_OPT_GET_SERVER_PUBLIC_KEY
    /* without it, no password could be sent to MySQL 8 without TLS */
    client_bool trust = tls <= CONF_TLS_PREFERRED;
    mysql_options(my, MYSQL_OPT_GET_SERVER_PUBLIC_KEY, &trust);
#endif
}

/* A server may ask for the password in the clear. Oracle's library refuses that by default. */
static void refuse_clear_passwords(MYSQL *my)
{
#if HAVE_DECL_MARIADB_OPT_RESTRICTED_AUTH
    mysql_options(
        my, MARIADB_OPT_RESTRICTED_AUTH,
        "mysql_native_password,caching_sha2_password,sha256_password,client_ed25519,parsec,auth_gssapi_client");
#else
    (void)my;
#endif
}

bool db_tls_local(const char *host, unsigned port)
{
    return !host || (!port && !strcmp(host, "localhost"));
}

static bool wants_tls(const struct conf_mysql *c, const char *host, unsigned port)
{
    return c->tls != CONF_TLS_DISABLED &&
           !(db_tls_local(host, port) && c->tls == CONF_TLS_PREFERRED);
}

int db_tls_options(const struct conf_mysql *c, const char *host, unsigned port, MYSQL *my,
                   struct err *err)
{
    const unsigned tcp = MYSQL_PROTOCOL_TCP;

    if (c->tls >= CONF_TLS_VERIFY_CA && !conf_or_null(c->tls_ca))
        return err_set(
            err, ERR_CONFIG,
            "tls = verify-ca and verify-identity need tls_ca, the file with the CA's certificate");
    if (!db_tls_local(host, port)) /* not for "localhost" by itself */
        mysql_options(my, MYSQL_OPT_PROTOCOL, &tcp);
    set_tls(c, wants_tls(c, host, port) ? c->tls : CONF_TLS_DISABLED, my);
    if (c->tls == CONF_TLS_DISABLED && !db_tls_local(host, port))
        refuse_clear_passwords(my);
    return 0;
}

#if HAVE_DECL_MYSQL_OPT_SSL_MODE

/* In the TLS handshake, this library waits for the server without any limit. */
struct guard {
    MYSQL *my;
    int64_t patience_ms;
    int made[2]; /* a pipe: closed when the connection is made, or was refused */
};

static void *cut_late(void *arg)
{
    const struct guard *g = arg;
    struct pollfd made = {g->made[0], POLLIN, 0};

    for (int wait_ms = (int)g->patience_ms; !poll(&made, 1, wait_ms); wait_ms = 100)
        if (g->my->net.fd > 0)
            shutdown(g->my->net.fd, SHUT_RDWR);
    return NULL;
}

/* mysql_real_connect, which cannot last much longer than patience_ms; without the guard if there
 * can be none. */
static bool connect_guarded(MYSQL *my, const struct conf_mysql *c, const char *host, unsigned port,
                            const char *password, const char *database)
{
    struct guard g = {my, 2 * c->connect_timeout_ms + c->read_timeout_ms, {-1, -1}};
    sigset_t all, before;
    pthread_t thread;
    bool guarded = wants_tls(c, host, port) && pipe2(g.made, O_CLOEXEC) == 0;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    guarded = guarded && pthread_create(&thread, NULL, cut_late, &g) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    bool made =
        mysql_real_connect(my, host, conf_or_null(c->user), password, database, port,
                           conf_or_null(c->socket), CLIENT_FOUND_ROWS | CLIENT_REMEMBER_OPTIONS);
    if (g.made[1] >= 0)
        close(g.made[1]);
    if (guarded)
        pthread_join(thread, NULL);
    if (g.made[0] >= 0)
        close(g.made[0]);
    return made;
}

bool db_tls_connect(MYSQL *my, const struct conf_mysql *c, const char *host, unsigned port,
                    const char *password, const char *database, bool *ret_stripped)
{
    *ret_stripped = false;
    if (connect_guarded(my, c, host, port, password, database))
        return true;
    *ret_stripped =
        mysql_errno(my) == CR_SSL_CONNECTION_ERROR && strstr(mysql_error(my), "support it");
    if (!*ret_stripped || !db_tls_local(host, port))
        return false;
    *ret_stripped = false;
    set_tls(c, CONF_TLS_DISABLED, my);
    return connect_guarded(my, c, host, port, password, database);
}

#else

#define GREETING_MAX 512
#define CAN_TLS 0x0800 /* CLIENT_SSL */

/* REFUSAL: something else than a greeting. LATE: it did not come, or not all of it. */
enum greeting { GREETING_TLS, GREETING_CLEAR, GREETING_REFUSAL, GREETING_LATE };

/* Whether the server's first packet offers TLS. The packet is left for the library to read. */
static enum greeting peek_greeting(int fd, int64_t deadline)
{
    unsigned char p[GREETING_MAX];
    struct pollfd in = {fd, POLLIN, 0}, gone = {fd, POLLRDHUP, 0};

    for (;;) {
        int64_t left = deadline - when_steady();
        ssize_t n = recv(fd, p, sizeof p, MSG_PEEK | MSG_DONTWAIT);
        if ((n > 5 && p[4] != 10) || n == sizeof p)
            return GREETING_REFUSAL;
        /* of the server's version text */
        const unsigned char *end = n > 5 ? memchr(p + 5, 0, (size_t)n - 5) : NULL;
        if (end && p + n >= end + 16) /* thread, salt, filler, capabilities */
            return (end[14] | end[15] << 8) & CAN_TLS ? GREETING_TLS : GREETING_CLEAR;
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR) || left <= 0)
            return GREETING_LATE;
        if (n < 0)
            poll(&in, 1, (int)left);
        else if (poll(&gone, 1, 1) > 0 && recv(fd, p, sizeof p, MSG_PEEK | MSG_DONTWAIT) == n)
            return GREETING_LATE; /* no more will come */
    }
}

/* Under TLS, the library waits without a limit, and cannot be given one. But it notices that the
 * connection is closed. */
static int wait_for(MYSQL *my, int what, int64_t patience_ms)
{
    struct pollfd p = {mysql_get_socket(my), 0, 0};

    p.events =
        (short)((what & MYSQL_WAIT_READ ? POLLIN : 0) | (what & MYSQL_WAIT_WRITE ? POLLOUT : 0) |
                (what & MYSQL_WAIT_EXCEPT ? POLLPRI : 0));
    int n = poll(&p, 1,
                 (int)(what & MYSQL_WAIT_TIMEOUT ? mysql_get_timeout_value_ms(my) : patience_ms));
    if (n < 0 && errno == EINTR)
        return 0;
    if (n <= 0 && what & MYSQL_WAIT_TIMEOUT)
        return MYSQL_WAIT_TIMEOUT;
    if (n <= 0)
        shutdown(p.fd, SHUT_RDWR);
    return what & ~MYSQL_WAIT_TIMEOUT;
}

/* With these, the strictest settings, the library sends nothing in the clear, whatever the greeting
 * says. */
static void set_strict(MYSQL *my)
{
    const client_bool on = true;

    mysql_options(my, MYSQL_OPT_SSL_ENFORCE, &on);
    mysql_options(my, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &on);
}

/* Chooses the settings by the greeting, overriding those of an option file. False: TLS is required,
 * and the server does not offer it. */
static bool choose(MYSQL *my, const struct conf_mysql *c, const char *host, unsigned port,
                   enum greeting greeting)
{
    if (greeting == GREETING_TLS && c->tls != CONF_TLS_DISABLED) {
        set_tls(c,
                db_tls_local(host, port) && c->tls == CONF_TLS_VERIFY_IDENTITY ? CONF_TLS_VERIFY_CA
                                                                               : c->tls,
                my);
    } else if (greeting != GREETING_REFUSAL) {
        if (!db_tls_local(host, port) && c->tls >= CONF_TLS_REQUIRED)
            return false;
        set_tls(c, CONF_TLS_DISABLED, my);
        if (!db_tls_local(host, port))
            refuse_clear_passwords(my);
    }
    return true;
}

/* Connects, and chooses the settings before the library reads the greeting; *ret_looked: it was in
 * time. */
static bool connect_held(MYSQL *my, const struct conf_mysql *c, const char *host, unsigned port,
                         const char *password, const char *database, bool *ret_looked,
                         bool *ret_stripped)
{
    struct sockaddr_storage peer = {0};
    MYSQL *made = NULL;

    *ret_looked = *ret_stripped = false;
    int what = mysql_real_connect_start(&made, my, host, conf_or_null(c->user), password, database,
                                        port, conf_or_null(c->socket),
                                        CLIENT_FOUND_ROWS | CLIENT_REMEMBER_OPTIONS);
    while (what) {
        int ready = wait_for(my, what, c->read_timeout_ms);
        if (!ready) /* interrupted */
            continue;
        int fd = mysql_get_socket(my);
        if (!*ret_looked &&
            getpeername(fd, (struct sockaddr *)&peer, &(socklen_t){sizeof peer}) == 0) {
            const enum greeting greeting = peek_greeting(fd, when_steady() + c->connect_timeout_ms);
            *ret_looked = true;
            *ret_stripped = greeting != GREETING_LATE && !choose(my, c, host, port, greeting);
            if (*ret_stripped || greeting == GREETING_LATE)
                shutdown(fd, SHUT_RDWR);
        }
        what = mysql_real_connect_cont(&made, my, ready);
    }
    return made;
}

/* If a server offers no TLS, MariaDB's library continues in the clear; and if TLS was requested,
 * its plugin for caching_sha2_password even assumes it and sends the password unencrypted. So the
 * library is stopped before it reads the greeting, while that is examined here. If the library was
 * faster, which is possible only with a server on this host, the strictest settings have made it
 * fail, and its error shows why. */
bool db_tls_connect(MYSQL *my, const struct conf_mysql *c, const char *host, unsigned port,
                    const char *password, const char *database, bool *ret_stripped)
{
    const char *user = conf_or_null(c->user), *path = conf_or_null(c->socket);
    bool looked = true;

    *ret_stripped = false;
    if (conf_or_null(c->defaults_file) || wants_tls(c, host, port)) {
        mysql_options(my, MYSQL_OPT_NONBLOCK, 0);
        set_strict(my);
        if (connect_held(my, c, host, port, password, database, &looked, ret_stripped))
            return true;
        if (looked || mysql_errno(my) != CR_SSL_CONNECTION_ERROR)
            return false;
        *ret_stripped =
            !choose(my, c, host, port,
                    strstr(mysql_error(my), "support it") ? GREETING_CLEAR : GREETING_TLS);
        if (*ret_stripped)
            return false;
    }
    return mysql_real_connect(my, host, user, password, database, port, path, CLIENT_FOUND_ROWS);
}

#endif
