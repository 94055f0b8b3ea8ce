/*
 * poller.c - the tick: runs the duties whose time has come and returns how long to wait. Invariant:
 * the phases only go forward (run, drain, kill, end), and the poller ends only when every result is
 * settled or has been given up aloud.
 */
#include "poller/poller.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/when.h"
#include "poller/care.h"
#include "poller/notify.h"
#include "poller/report.h"
#include "poller/state.h"
#include "runner/rights.h"
#include "store/db_connect.h"
#include "store/db_session.h"
#include "store/peek_store.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* A tick later than this means that we were stopped ourselves: nobody else is to blame for
 * silence. */
#define STALL_US INT64_C(1000000)
/* While the runner has so many jobs to go on with, its reports are taken in heaps, at this
 * interval: a wakeup for each would cost a fast handler more than its start does. */
#define QUEUE_LONG 64
#define REPORTS_US 5000
#define PING_LIMIT_US INT64_C(10000000)
#define STOP_MS 10000
#define RELOAD_LIMIT_US INT64_C(10000000)

const char *poller_mode_name(enum poller_mode m)
{
    return m == POLLER_ONCE ? "once" : m == POLLER_FOR ? "for" : "resident";
}

uint64_t poller_random(void)
{
    uint64_t r = 0;

    while (getrandom(&r, sizeof r, 0) != (ssize_t)sizeof r)
        ;
    return r;
}

void poller_end(struct poller *p, int code, const char *text)
{
    if (code < 0 && p->failure.code == 0)
        err_set(&p->failure, code, "%s", text);
    p->phase = PHASE_END;
}

/* --- phases --- */

static void drain(struct poller *p, const char *why, int64_t limit_us)
{
    int64_t now_us = when_steady_us(),
            patience_us = 1000 * (p->conf->dqd.drain_timeout_ms > p->conf->dqd.lease_ms
                                      ? p->conf->dqd.drain_timeout_ms
                                      : p->conf->dqd.lease_ms);

    p->phase = PHASE_DRAIN;
    p->drain_until_us = limit_us == NEVER_US ? NEVER_US : now_us + limit_us;
    p->give_up_us = now_us + patience_us;
    notify_send("STOPPING=1\nSTATUS=%s, %zu jobs left", why, p->flight.count);
    log_event(LOG_INFO, why, "jobs=%zu", p->flight.count);
    wakeup_end(&p->wakeup);
    flight_return_held(p, "dqd ends");
    if (!p->runner_gone)
        link_send_return(p->link);
    if (p->lock_fd >= 0) { /* the next cron-style run may begin while our last handlers finish */
        close(p->lock_fd);
        p->lock_fd = -1;
    }
}

static void kill_all(struct poller *p, const char *why)
{
    p->phase = PHASE_KILL;
    log_event(LOG_WARN, why, "jobs=%zu", p->flight.count);
    for (size_t i = 0; i < p->flight.cap; i++)
        if (p->flight.jobs[i] && !p->runner_gone)
            link_send_kill(p->link, p->flight.jobs[i]->number, MESSAGE_KILL_SHUTDOWN);
}

/* Although something is left to do. */
static void end_away(struct poller *p)
{
    struct err e = p->troubles.away;
    char text[WHEN_TEXT_SIZE];

    if (p->results.count)
        log_event(LOG_ERROR,
                  "results could not be recorded, their tasks run again when the lease has ended",
                  "results=%zu", p->results.count);
    if (p->troubles.away_us)
        err_prefix(&e, "no database for %s, and the last try failed",
                   when_format_rough(text, (when_steady_us() - p->troubles.away_us) / 1000));
    else
        err_set(&e, ERR_UNAVAILABLE, "the server did not take the results of this run");
    poller_end(p, ERR_UNAVAILABLE, e.text);
}

/* A --for whose time is up fails with what still does not work: cron has no other way to learn of
 * it. */
static void end_settled(struct poller *p)
{
    const struct duty_trouble *t = p->troubles.duties, *end = p->troubles.duties + DUTY_COUNT;
    bool told = p->o->mode != POLLER_FOR || p->asked_to_end;

    while (t < end && !t->since_us)
        t++;
    if (!told && p->troubles.away_us)
        end_away(p);
    else if (!told && t < end)
        poller_end(p, t->said.code, t->said.text);
    p->phase = PHASE_END;
}

static void advance(struct poller *p)
{
    int64_t now_us = when_steady_us();
    bool settled = p->flight.count == 0 && p->results.count == 0 && !p->claims.recover;

    if (p->phase == PHASE_RUN && p->runner_gone) {
        wakeup_end(&p->wakeup);
        p->phase = PHASE_DRAIN;
        p->drain_until_us = NEVER_US;
        p->give_up_us = now_us + p->conf->dqd.lease_ms * 1000;
        err_set(&p->failure, ERR_SYSTEM, "the runner process died");
    }
    if (p->phase == PHASE_RUN && p->o->mode == POLLER_ONCE && settled && look_is_empty(&p->look))
        p->phase = PHASE_END;
    if (p->phase == PHASE_RUN && p->o->mode == POLLER_ONCE && p->troubles.away_us &&
        p->flight.count == 0 && now_us - p->troubles.away_us > p->conf->dqd.lease_ms * 1000)
        end_away(p);
    if (p->phase == PHASE_RUN && p->o->mode == POLLER_ONCE && p->flight.count == 0 &&
        settle_stuck(&p->results, now_us - p->conf->dqd.lease_ms * 1000))
        poller_end(
            p, ERR_LOCKED,
            "results could not be recorded, see the log; their tasks run again when their lease has ended");
    if (p->phase == PHASE_RUN && now_us >= p->end_us)
        drain(p, "time is up, running handlers finish", NEVER_US);
    if (p->phase == PHASE_DRAIN && now_us >= p->drain_until_us)
        kill_all(p, "drain_timeout is over, handlers are killed");
    if (p->phase != PHASE_DRAIN && p->phase != PHASE_KILL)
        return;
    if (settled) {
        end_settled(p);
    } else if (p->flight.count == 0 && now_us >= p->give_up_us) {
        end_away(p);
    }
}

static int64_t next_phase(const struct poller *p)
{
    if (p->phase == PHASE_RUN)
        return p->end_us;
    return p->phase == PHASE_DRAIN
               ? MIN(p->drain_until_us, p->flight.count ? NEVER_US : p->give_up_us)
           : p->flight.count ? NEVER_US
                             : p->give_up_us;
}

/* --- the runner: is it alive? --- */

/* While handlers run, the runner must answer: a runner that is stopped enforces no timeout. It is
 * killed, and its handlers with it. */
static void watch_runner(struct poller *p, int64_t now_us)
{
    int64_t silent_us = now_us - p->ping_sent_us,
            limit_us = MIN(p->conf->dqd.lease_ms * 500, PING_LIMIT_US);

    if (p->runner_gone || p->flight.count == 0)
        return;
    if (now_us - p->ticked_us > STALL_US)
        p->ping_sent_us = now_us;
    else if (p->ping_answered == p->ping_sent) {
        if (silent_us > limit_us / 3) {
            p->ping_sent_us = now_us;
            link_send_ping(p->link, ++p->ping_sent);
        }
    } else if (silent_us > limit_us) {
        pid_t pid = link_pid(p->link);
        bool killed = link_kill(p->link);
        log_event(LOG_ERROR,
                  killed ? "the runner does not answer, it is killed"
                         : "the runner neither answers nor may it be killed",
                  "pid=%d", (int)pid);
        if (!killed)
            link_give_up(p->link);
        p->ping_sent_us = now_us;
    }
}

static int64_t next_ping(const struct poller *p)
{
    int64_t limit_us = MIN(p->conf->dqd.lease_ms * 500, PING_LIMIT_US);

    if (p->runner_gone || p->flight.count == 0)
        return NEVER_US;
    return p->ping_sent_us + (p->ping_answered == p->ping_sent ? limit_us / 3 : limit_us) + 1000;
}

/* The runner goes on meanwhile: only the new table waits. */
static void watch_reload(struct poller *p, int64_t now_us)
{
    if (!p->reload_us || now_us - p->reload_us < RELOAD_LIMIT_US)
        return;
    log_event(LOG_WARN, "the handlers file has still not been read, the old one stays until it has",
              "file=%s", log_quote(p->conf->dqd.handlers));
    p->reload_us = 0;
}

/* --- signals --- */

static struct look_settings look_settings_of(const struct poller *p)
{
    return (struct look_settings){.once = p->o->mode == POLLER_ONCE,
                                  .poll_us = p->conf->dqd.poll_interval_ms * 1000,
                                  .lease_us = p->conf->dqd.lease_ms * 1000,
                                  .slots = (uint32_t)p->slots,
                                  .claim_batch = (uint32_t)p->conf->dqd.claim_batch};
}

static void reload(struct poller *p)
{
    struct look_settings look_settings;
    struct conf *fresh = NULL;
    struct err err = {0};

    notify_send("RELOADING=1\nMONOTONIC_USEC=%" PRId64, when_steady_us());
    if (conf_load(p->o->conf_path, &fresh, &err) < 0) {
        log_event(LOG_ERROR, "configuration not taken over, the old one stays", "error=%s",
                  log_quote(err.text));
    } else {
        const struct conf_key *left = conf_take_reloadable(p->conf, fresh);

        if (left)
            log_event(LOG_WARN, "a changed setting takes effect only at the next start",
                      "section=%s key=%s", left->section, left->name);
        look_settings = look_settings_of(p);
        look_set(&p->look, &look_settings);
        log_set_level(p->o->log_level ? p->o->log_level : p->conf->dqd.log_level);
        conf_free(fresh);
    }
    if (!p->runner_gone) {
        link_send_reload(p->link, p->table->handlers->digest);
        p->reload_us = when_steady_us();
    }
    notify_send("READY=1");
}

static void take_signals(struct poller *p)
{
    struct signalfd_siginfo s;

    while (read(p->signal_fd, &s, sizeof s) == (ssize_t)sizeof s) {
        if (s.ssi_signo == SIGHUP) {
            reload(p);
            continue;
        }
        p->asked_to_end = true;
        if (p->phase == PHASE_RUN)
            drain(p, "asked to end, running handlers finish", p->conf->dqd.drain_timeout_ms * 1000);
        else if (p->phase == PHASE_DRAIN)
            kill_all(p, "asked again to end, handlers are killed");
    }
}

/* --- the loop --- */

static int64_t tick(struct poller *p)
{
    struct err err = {0};
    int64_t now_us = when_steady_us();

    report_take_all(p);
    watch_runner(p, now_us);
    watch_reload(p, now_us);
    p->ticked_us = now_us;
    log_catch_up();
    wakeup_take(&p->wakeup, &p->look);
    duty_run(p);
    if (!p->runner_gone && link_flush(p->link, &err) < 0)
        report_take_all(p); /* what it said before it died still counts */
    if (p->watchdog_every_us && now_us >= p->watchdog_us) {
        notify_send("WATCHDOG=1\nSTATUS=%u running, %" PRIu64 " done, %" PRIu64 " failed, %" PRIu64
                    " tried again since the start",
                    p->look.running, p->results.done, p->results.failed, p->results.retried);
        p->watchdog_us = now_us + p->watchdog_every_us;
    }
    advance(p);
    return MIN(MIN(MIN(duty_next(p), wakeup_next(&p->wakeup)), next_phase(p)),
               MIN(next_ping(p), p->watchdog_every_us ? p->watchdog_us : NEVER_US));
}

static void wait_until(struct poller *p, int64_t until_us)
{
    struct pollfd fds[] = {{.fd = p->signal_fd, .events = POLLIN},
                           {.fd = -1, .events = POLLIN},
                           {.fd = wakeup_fd(&p->wakeup), .events = POLLIN}};
    int64_t wait_us = until_us == NEVER_US ? NEVER_US : until_us - when_steady_us();
    struct timespec ts;

    if (!p->runner_gone) {
        fds[1].fd = link_fd(p->link);
        if (p->flight.count > p->look.running + QUEUE_LONG && !flight_holds(p)) {
            fds[1].events = 0;
            wait_us = MIN(wait_us, REPORTS_US);
        }
        if (link_wants_write(p->link))
            fds[1].events |= POLLOUT;
    }
    if (wait_us < 0)
        wait_us = 0;
    ts = (struct timespec){.tv_sec = wait_us / 1000000, .tv_nsec = wait_us % 1000000 * 1000};
    (void)ppoll(fds, sizeof fds / sizeof fds[0], wait_us == NEVER_US ? NULL : &ts, NULL);
    if (fds[2].revents)
        wakeup_ring(&p->wakeup);
    if (fds[0].revents)
        take_signals(p);
}

/* --- from start to end --- */

/* Bodies are written to files in memory, to which the limit applies. The runner, and with it the
 * handlers, keep what was given. */
static void lift_file_limit(struct poller *p)
{
    struct rlimit most;

    signal(SIGXFSZ, SIG_IGN); /* a write that is too long fails, which is dealt with */
    getrlimit(RLIMIT_FSIZE, &p->file_limit);
    most = p->file_limit;
    most.rlim_cur = most.rlim_max;
    setrlimit(RLIMIT_FSIZE, &most);
}

static int watch_signals(struct poller *p, struct err *err)
{
    sigset_t set;

    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    p->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return p->signal_fd < 0 ? err_set(err, ERR_SYSTEM, "signalfd: %s", strerror(errno)) : 0;
}

static int drop_root(struct poller *p, struct err *err)
{
    int rc;

    if (geteuid() != 0 || !p->conf->dqd.user[0])
        return 0;
    rc = rights_become(p->conf->dqd.user, err);
    p->dropped = geteuid() != 0;
    return rc;
}

static int owner_init(struct claim_owner *o, char *host, size_t size, struct err *err)
{
    if (gethostname(host, size) != 0)
        return err_set(err, ERR_SYSTEM, "gethostname: %s", strerror(errno));
    host[size - 1] = '\0';
    o->host = host;
    o->pid = (uint32_t)getpid();
    for (size_t i = 0; i < sizeof o->token; i += sizeof(uint64_t)) {
        uint64_t r = poller_random();

        memcpy(o->token + i, &r, sizeof r);
    }
    return 0;
}

static int start(struct poller *p, struct err *err)
{
    struct runner_options r = {.handlers_path = p->conf->dqd.handlers,
                               .handlers = p->table->handlers,
                               .slots = p->slots,
                               .default_user = p->conf->dqd.user,
                               .log_level = log_level()};
    int rc = watch_signals(p, err);

    if (rc == 0)
        rc = link_start(&r, &p->link, err);
    if (rc == 0)
        rc = db_connect_load_secret(p->db, err);
    if (rc == 0)
        wakeup_listen(&p->wakeup, p->conf);
    if (rc == 0)
        rc = drop_root(p, err);
    lift_file_limit(p);
    return rc;
}

static void finish(struct poller *p)
{
    wakeup_end(&p->wakeup);
    registry_leave(p);
    if (p->link)
        link_stop(p->link, STOP_MS);
    care_say_left(p);
    flight_free(p);
    settle_free(&p->results);
    tags_free(p);
    look_free(&p->look);
    peek_store_done(&p->claims.peek);
    db_free(p->db);
    handlers_free(p->table->handlers);
    free(p->table);
    conf_free(p->conf);
    if (p->signal_fd >= 0)
        close(p->signal_fd);
    if (p->lock_fd >= 0)
        close(p->lock_fd);
}

/* A dead runner took its rights with it; a fresh start of the program has them again, unless we
 * gave up root. */
static void start_anew(const struct poller *p)
{
    if (!p->runner_gone || p->dropped || !p->o->argv || p->o->mode != POLLER_RESIDENT ||
        p->asked_to_end)
        return;
    log_event(LOG_NOTE, "starting anew", "%s", "");
    poll(NULL, 0, 1000); /* a runner that dies at once must not make a busy loop */
    setrlimit(RLIMIT_FSIZE, &p->file_limit);
    execv("/proc/self/exe", p->o->argv);
    log_event(LOG_ERROR, "cannot start anew", "error=%s", strerror(errno));
}

/* Locks are not waited for: others would wait with us. What a host that vanishes leaves locked
 * is free again when its leases end, or soon after; a poller that lives is never silent for so
 * long. */
static struct db_session session_of(const struct conf *c)
{
    int64_t idle_ms = c->dqd.lease_ms;

    if (idle_ms < 3 * c->dqd.poll_interval_ms)
        idle_ms = 3 * c->dqd.poll_interval_ms;
    if (idle_ms < 2 * c->dqd.heartbeat_ms)
        idle_ms = 2 * c->dqd.heartbeat_ms;
    return (struct db_session){
        .lock_wait_s = 0, .table_wait_s = 1, .idle_s = (unsigned)((idle_ms + 999) / 1000)};
}

int poller_run(struct poller_options *o, struct err *err)
{
    int64_t now_us = when_steady_us();
    struct poller p = {.o = o,
                       .conf = o->conf,
                       .signal_fd = -1,
                       .lock_fd = o->lock_fd,
                       .wakeup = {.off = o->mode == POLLER_ONCE},
                       .registry = {.shares = 1},
                       .drain_until_us = NEVER_US};
    struct look_settings look_settings;
    struct db_session session;
    char host[256];
    int rc;

    p.table = mem_zero(1, sizeof *p.table);
    p.table->handlers = o->handlers;
    p.table->users = 1;
    p.db = db_new(&p.conf->mysql);
    session = session_of(p.conf);
    db_session_set(p.db, &session);
    p.slots = o->slots ? o->slots : p.conf->dqd.slots;
    look_settings = look_settings_of(&p);
    look_init(&p.look, &look_settings, &p.clock);
    p.end_us = o->mode == POLLER_FOR ? now_us + o->for_ms * 1000 : NEVER_US;
    p.ping_sent_us = p.ticked_us = now_us;
    p.watchdog_every_us = notify_watchdog_us();
    rc = owner_init(&p.owner, host, sizeof host, err);
    if (rc == 0)
        rc = start(&p, err);
    if (rc == 0) {
        notify_send("READY=1");
        while (p.phase != PHASE_END) {
            int64_t until_us = tick(&p);

            if (p.phase != PHASE_END)
                wait_until(&p, until_us);
        }
        if (p.failure.code)
            rc = err_set(err, p.failure.code, "%s", p.failure.text);
    }
    finish(&p);
    start_anew(&p);
    return rc;
}
