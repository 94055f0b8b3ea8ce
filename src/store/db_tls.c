/*
 * db_tls.c - how a connection is protected.
 *
 * Invariant: where the settings require TLS nothing is sent to a server that does not offer it, or whose certificate is not as
 * asked for.
 */
#include "base/when.h"
#include "store/db_private.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#ifdef HAVE_MY_BOOL
typedef my_bool client_bool;
#else
typedef bool client_bool;
#endif

static const char *set_or_null(const char *s)
{
    return s && *s ? s : NULL;
}

/* Each library has its own way to ask for TLS, and their defaults differ by version: everything is said. MariaDB's would shake
 * hands over a local socket, too: 30 to 40 ms of a dq add, for nothing. */
int db_tls_options(const struct conf_mysql *c, bool local, MYSQL *my, struct err *err)
{
    const enum conf_tls tls = local && c->tls == CONF_TLS_PREFERRED ? CONF_TLS_DISABLED : c->tls;

    if (tls >= CONF_TLS_VERIFY_CA && !set_or_null(c->tls_ca))
        return err_set(err, ERR_CONFIG,
                       "tls = verify-ca and verify-identity need tls_ca: the file with the certificate of the authority");
#if HAVE_DECL_MYSQL_OPT_SSL_MODE
    static const unsigned modes[] = {SSL_MODE_DISABLED, SSL_MODE_PREFERRED, SSL_MODE_REQUIRED, SSL_MODE_VERIFY_CA,
                                     SSL_MODE_VERIFY_IDENTITY};
    mysql_options(my, MYSQL_OPT_SSL_MODE, &modes[tls]);
#else
    client_bool enforce = tls != CONF_TLS_DISABLED, verify = tls == CONF_TLS_VERIFY_IDENTITY;
    mysql_options(my, MYSQL_OPT_SSL_ENFORCE, &enforce);
    mysql_options(my, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &verify);
#endif
#if HAVE_DECL_MYSQL_OPT_GET_SERVER_PUBLIC_KEY
    client_bool trust = tls <= CONF_TLS_PREFERRED; /* else a password of MySQL 8 could not be sent without TLS */
    mysql_options(my, MYSQL_OPT_GET_SERVER_PUBLIC_KEY, &trust);
#endif
    if (tls != CONF_TLS_DISABLED) {
        mysql_options(my, MYSQL_OPT_SSL_KEY, set_or_null(c->tls_key));
        mysql_options(my, MYSQL_OPT_SSL_CERT, set_or_null(c->tls_cert));
        mysql_options(my, MYSQL_OPT_SSL_CA, tls >= CONF_TLS_VERIFY_CA ? c->tls_ca : NULL);
    }
    return 0;
}

#if HAVE_DECL_MYSQL_OPT_SSL_MODE

bool db_tls_connect(MYSQL *my, const struct conf_mysql *c, const char *host, unsigned port, const char *password,
                    const char *database, bool *ret_stripped)
{
    *ret_stripped = false;
    return mysql_real_connect(my, host, set_or_null(c->user), password, database, port, set_or_null(c->socket), CLIENT_FOUND_ROWS);
}

#else

#define GREETING_MAX 512
#define CAN_TLS 0x0800 /* CLIENT_SSL */

/* The server's first packet, left where it is: whether it says that there is no TLS. A refusal, or nothing at all, does not. */
static bool says_no_tls(int fd, int64_t deadline)
{
    unsigned char p[GREETING_MAX];
    struct pollfd in = {fd, POLLIN, 0};

    for (;;) {
        int64_t left = deadline - when_steady();
        ssize_t n = recv(fd, p, sizeof p, MSG_PEEK | MSG_DONTWAIT);
        if (n > 5 && p[4] != 10)
            return false;
        const unsigned char *end = n > 5 ? memchr(p + 5, 0, (size_t)n - 5) : NULL; /* of the server's version */
        if (end && p + n >= end + 16)                                              /* thread, salt, filler, capabilities */
            return !((end[14] | end[15] << 8) & CAN_TLS);
        if (n == 0 || n == sizeof p || (n < 0 && errno != EAGAIN && errno != EINTR) || left <= 0)
            return false;
        poll(n > 0 ? NULL : &in, n <= 0, n > 0 ? 1 : (int)left);
    }
}

static int wait_for(MYSQL *my, int what)
{
    struct pollfd p = {mysql_get_socket(my), 0, 0};

    p.events = (short)((what & MYSQL_WAIT_READ ? POLLIN : 0) | (what & MYSQL_WAIT_WRITE ? POLLOUT : 0) |
                       (what & MYSQL_WAIT_EXCEPT ? POLLPRI : 0));
    int n = poll(&p, 1, what & MYSQL_WAIT_TIMEOUT ? (int)mysql_get_timeout_value_ms(my) : -1);
    if (n < 0 && errno == EINTR)
        return 0;
    if (n <= 0)
        return MYSQL_WAIT_TIMEOUT;
    return what & ~MYSQL_WAIT_TIMEOUT;
}

/* MariaDB's library goes on in the clear, password and all, where a server offers no TLS. So it is held before the server's
 * greeting while that is looked at; where TLS is missing the line is cut under it. */
bool db_tls_connect(MYSQL *my, const struct conf_mysql *c, const char *host, unsigned port, const char *password,
                    const char *database, bool *ret_stripped)
{
    const char *user = set_or_null(c->user), *path = set_or_null(c->socket);
    struct sockaddr_storage peer = {0};
    bool looked = false;
    MYSQL *made = NULL;

    *ret_stripped = false;
    if (!host || c->tls < CONF_TLS_REQUIRED)
        return mysql_real_connect(my, host, user, password, database, port, path, CLIENT_FOUND_ROWS);
    mysql_options(my, MYSQL_OPT_NONBLOCK, 0);
    int what = mysql_real_connect_start(&made, my, host, user, password, database, port, path, CLIENT_FOUND_ROWS);
    while (what) {
        int ready = wait_for(my, what);
        if (!ready) /* interrupted */
            continue;
        int fd = mysql_get_socket(my);
        if (!looked && getpeername(fd, (struct sockaddr *)&peer, &(socklen_t){sizeof peer}) == 0) {
            looked = true;
            *ret_stripped = peer.ss_family != AF_UNIX && says_no_tls(fd, when_steady() + c->connect_timeout_ms);
            if (*ret_stripped)
                shutdown(fd, SHUT_RDWR);
        }
        what = mysql_real_connect_cont(&made, my, ready);
    }
    return made;
}

#endif
