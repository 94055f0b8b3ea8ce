/*
 * startup.c - see startup.h.
 */
#include "poller/startup.h"

#include "poller/context.h"
#include "runner/rights.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/param.h>
#include <sys/signalfd.h>
#include <unistd.h>

int startup_signals(int *ret_fd, struct err *err)
{
    sigset_t set;

    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    *ret_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return *ret_fd < 0 ? err_set(err, ERR_SYSTEM, "signalfd: %s", strerror(errno)) : 0;
}

int startup_drop_root(const char *user, bool *ret_dropped, struct err *err)
{
    int rc;

    if (geteuid() != 0 || !user[0])
        return 0;
    rc = rights_become(user, err);
    *ret_dropped = geteuid() != 0;
    return rc;
}

void startup_lift_file_limit(struct rlimit *ret_given)
{
    struct rlimit most;

    getrlimit(RLIMIT_FSIZE, ret_given);
    most = *ret_given;
    most.rlim_cur = most.rlim_max;
    setrlimit(RLIMIT_FSIZE, &most);
}

int startup_owner(struct claim_owner *o, char *host, size_t size, struct err *err)
{
    if (gethostname(host, size) != 0)
        return err_set(err, ERR_SYSTEM, "gethostname: %s", strerror(errno));
    host[size - 1] = '\0';
    o->host = host;
    o->pid = (uint32_t)getpid();
    for (size_t i = 0; i < sizeof o->token; i += sizeof(uint64_t)) {
        uint64_t r = context_random();

        memcpy(o->token + i, &r, sizeof r);
    }
    return 0;
}

/* Locks are not waited for: others would wait with us. The locks that a vanished host leaves are
 * freed when its leases end, or soon after; a poller that lives is never silent for that long. */
struct db_session startup_session(const struct conf *conf)
{
    int64_t polls_ms = 3 * conf->dqd.poll_interval_ms, beats_ms = 2 * conf->dqd.heartbeat_ms,
            idle_ms = MAX(conf->dqd.lease_ms, MAX(polls_ms, beats_ms));

    return (struct db_session){.lock_wait_s = 0,
                               .table_wait_s = 1,
                               .idle_s = (unsigned)((idle_ms + 999) / 1000),
                               .lasts = true};
}
