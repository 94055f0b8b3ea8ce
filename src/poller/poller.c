/*
 * poller.c - the tick: takes what has happened, runs the duties whose time has come, and returns
 * how long to sleep. Invariant: the phases only go forward (run, drain, kill, end), and the poller
 * ends only when every result is settled or the log says that it was given up.
 */
#include "poller/poller.h"

#include "base/log.h"
#include "base/log_fold.h"
#include "base/when.h"
#include "conf/conf_load.h"
#include "poller/care.h"
#include "poller/duty.h"
#include "poller/notify.h"
#include "poller/report.h"
#include "poller/startup.h"
#include "poller/watch.h"
#include "store/db/db_connect.h"
#include "store/db/db_session.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/param.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* While the runner has this many jobs to go on with, its reports are taken in heaps, at this
 * interval: a wakeup for each would cost a fast handler more than its start does. */
#define QUEUE_LONG 64
#define REPORTS_US 5000
/* A runner that has not ended its handlers by then is killed. Ending takes it milliseconds. */
#define STOP_MS 10000
/* A runner that dies at once must not make a busy loop. */
#define RESTART_MS 1000

enum phase { PHASE_RUN, PHASE_DRAIN, PHASE_KILL, PHASE_END };

struct poller {
    struct poller_options *o;
    struct conf *conf;
    struct duties duties;
    struct watch watch;
    char host[256];
    int signal_fd, lock_fd;
    bool dropped;             /* gave up root: cannot start another runner */
    struct rlimit file_limit; /* RLIMIT_FSIZE, as it was given */

    enum phase phase;
    int64_t end_us;         /* POLLER_FOR: claims end; else NEVER_US */
    int64_t drain_until_us; /* PHASE_DRAIN: kill then; NEVER_US: no limit */
    int64_t give_up_us;     /* PHASE_DRAIN: results that cannot be settled are left to the lease */
    bool asked_to_end;      /* TERM or INT came */
    struct err failure;     /* why it ends, code 0: as asked */

    int64_t watchdog_us, watchdog_every_us; /* systemd's: the next time; how often, 0: never */
    int64_t status_us;                      /* the heartbeat with which it got the status line */
};

static const char *mode_name(enum poller_mode m)
{
    return m == POLLER_ONCE ? "once" : m == POLLER_FOR ? "for" : "resident";
}

/* --- phases --- */

static size_t jobs(const struct poller *p)
{
    return flight_count(&p->duties.flight);
}

/* At once. Of several failures the first one counts. */
static void end(struct poller *p, int code, const char *text)
{
    if (p->failure.code == 0)
        err_set(&p->failure, code, "%s", text);
    p->phase = PHASE_END;
}

/* Gives back what has not begun. */
static void return_waiting(struct duties *d, const char *why)
{
    handover_return(&d->handover, why);
    if (!d->ctx.runner_gone)
        link_send_return(d->ctx.link);
}

static void drain(struct poller *p, const char *why, int64_t limit_us)
{
    struct duties *d = &p->duties;
    int64_t now_us = when_steady_us(),
            patience_us = 1000 * MAX(p->conf->dqd.drain_timeout_ms, p->conf->dqd.lease_ms);

    p->phase = PHASE_DRAIN;
    p->drain_until_us = limit_us == NEVER_US ? NEVER_US : now_us + limit_us;
    p->give_up_us = now_us + patience_us;
    notify_send("STOPPING=1\nSTATUS=%s, %zu jobs left", why, jobs(p));
    log_event(LOG_INFO, why, "jobs=%zu", jobs(p));
    d->ctx.ending = true;
    registry_end(&d->registry);
    wakeup_end(&d->wakeup);
    return_waiting(d, "dqd is stopping");
}

/* The next cron-style run may begin while our last handlers finish. It counts them, so it must be
 * able to see that they are the last ones, if it can see us at all. */
static void unlock(struct poller *p)
{
    if (p->phase == PHASE_RUN || p->lock_fd < 0 ||
        !registry_has_ended(&p->duties.registry, when_steady_us()))
        return;
    close(p->lock_fd);
    p->lock_fd = -1;
}

static void kill_all(struct poller *p, const char *why)
{
    const struct context *ctx = &p->duties.ctx;
    const struct flight_job *j;

    p->phase = PHASE_KILL;
    log_event(LOG_WARN, why, "jobs=%zu", jobs(p));
    for (uint32_t at = 0; !ctx->runner_gone && (j = flight_each(&p->duties.flight, &at));)
        link_send_kill(ctx->link, j->number, MESSAGE_KILL_SHUTDOWN);
}

/* Although something is left to do. */
static void end_away(struct poller *p)
{
    const struct outage *outage = &p->duties.outage;
    size_t results = settle_count(&p->duties.results);
    struct err e = outage->last;
    char text[WHEN_TEXT_SIZE];

    if (results)
        log_event(LOG_ERROR,
                  "some results could not be recorded; their tasks run again when their leases end",
                  "results=%zu", results);
    if (outage->since_us)
        err_prefix(&e, "no database for %s; the last attempt failed",
                   when_format_rough(text, (when_steady_us() - outage->since_us) / 1000));
    else
        err_set(&e, ERR_UNAVAILABLE, "the server did not record the results of this run");
    end(p, ERR_UNAVAILABLE, e.text);
}

/* A --for whose time is up fails with what still does not work: cron has no other way to learn of
 * it. */
static void end_settled(struct poller *p)
{
    const struct err *refused = duty_refused(&p->duties);
    bool reports = p->o->mode == POLLER_FOR && !p->asked_to_end;

    if (reports && p->duties.outage.since_us)
        end_away(p);
    else if (reports && refused)
        end(p, refused->code, refused->text);
    p->phase = PHASE_END;
}

/* As if it had been asked to stop, but it fails: started again, it would be refused. */
static void drain_outgrown(struct poller *p)
{
    const struct err *why = &p->duties.registry.outgrown;

    log_event(LOG_ERROR, "a newer dq has changed the tables; no more tasks are started", "error=%s",
              log_quote(why->text));
    p->failure = *why;
    drain(p, "waiting for running handlers", p->conf->dqd.drain_timeout_ms * 1000);
}

/* A pass ends when nothing is left, and waits at most a lease for a database that is away, or for
 * results that cannot be recorded. */
static void advance_pass(struct poller *p, int64_t now_us)
{
    const struct duties *d = &p->duties;
    const struct err *refused = duty_refused(d);
    int64_t lease_us = context_lease_us(&d->ctx);

    if (duty_settled(d) && (look_is_empty(&d->look) || d->ctx.quiet))
        p->phase = PHASE_END;
    else if (jobs(p))
        return;
    else if (d->outage.since_us && now_us - d->outage.since_us > lease_us)
        end_away(p);
    else if (settle_stuck(&d->results, now_us - lease_us))
        end(p, refused ? refused->code : ERR_LOCKED,
            refused
                ? refused->text
                : "some results could not be recorded (see the log); their tasks run again when their leases end");
}

static void advance(struct poller *p)
{
    struct duties *d = &p->duties;
    int64_t now_us = when_steady_us();

    if (p->phase == PHASE_RUN && d->ctx.runner_gone) {
        wakeup_end(&d->wakeup);
        p->phase = PHASE_DRAIN;
        p->drain_until_us = NEVER_US;
        p->give_up_us = now_us + context_lease_us(&d->ctx);
        registry_end(&d->registry);
        err_set(&p->failure, ERR_SYSTEM, "the runner process died");
    }
    if (p->phase == PHASE_RUN && d->registry.outgrown.code)
        drain_outgrown(p);
    if (p->phase == PHASE_RUN && p->o->mode == POLLER_ONCE)
        advance_pass(p, now_us);
    if (p->phase == PHASE_RUN && now_us >= p->end_us)
        drain(p, "time is up; waiting for running handlers", NEVER_US);
    if (p->phase == PHASE_DRAIN && now_us >= p->drain_until_us)
        kill_all(p, "drain_timeout has expired; killing handlers");
    if (p->phase != PHASE_DRAIN && p->phase != PHASE_KILL)
        return;
    if (duty_settled(d))
        end_settled(p);
    else if (jobs(p) == 0 && now_us >= p->give_up_us)
        end_away(p);
}

static int64_t next_phase(const struct poller *p)
{
    int64_t give_up_us = jobs(p) ? NEVER_US : p->give_up_us;

    if (p->phase == PHASE_RUN)
        return p->end_us;
    return p->phase == PHASE_DRAIN ? MIN(p->drain_until_us, give_up_us) : give_up_us;
}

/* --- what the runner reports --- */

static void take_reports(void *arg)
{
    struct poller *p = arg;
    struct duties *d = &p->duties;
    struct handlers *fresh;
    struct message m;

    while (!d->ctx.runner_gone && link_next(d->ctx.link, &m)) {
        switch (m.type) {
        case MESSAGE_GONE:
            d->ctx.runner_gone = d->ctx.ending = true;
            report_runner_gone(&d->ctx, &d->flight);
            break;
        case MESSAGE_RELOADED:
            watch_reloaded(&p->watch);
            fresh = report_handlers(&d->ctx, &m.reloaded);
            /* what waits is claimed again for the new ones, and keeps none of theirs waiting */
            if (fresh && fresh->digest != tags_table(&d->tags)->handlers->digest)
                return_waiting(d, NULL);
            if (fresh)
                duty_set_handlers(d, fresh);
            break;
        case MESSAGE_CHUNK:
            follow_take(&d->follow, m.number, &m.chunk);
            break;
        case MESSAGE_KEPT:
            served_kept(&d->served, &m.kept);
            break;
        case MESSAGE_PONG:
            watch_answered(&p->watch, m.pong.n);
            break;
        default:
            report_job(&d->ctx, &d->flight, &m);
            break;
        }
    }
}

/* --- signals --- */

static struct look_settings look_settings_of(const struct poller *p)
{
    return (struct look_settings){
        .once = p->o->mode == POLLER_ONCE,
        .poll_us = {p->conf->dqd.poll_least_ms * 1000, p->conf->dqd.poll_interval_ms * 1000},
        .hold_us = conf_check_ms(p->conf) * 1000,
        .lease_us = p->conf->dqd.lease_ms * 1000,
        .slots = p->duties.ctx.slots,
        .claim_batch = (uint32_t)p->conf->dqd.claim_batch};
}

static void reload(struct poller *p)
{
    struct duties *d = &p->duties;
    struct look_settings look_settings;
    struct conf *fresh = NULL;
    struct err err = {0};

    notify_send("RELOADING=1\nMONOTONIC_USEC=%" PRId64, when_steady_us());
    if (conf_load(p->o->conf_path, &fresh, &err) < 0) {
        log_event(LOG_ERROR, "configuration not reloaded; the old one stays in effect", "error=%s",
                  log_quote(err.text));
    } else {
        const struct conf_key *left = conf_take_reloadable(p->conf, fresh);

        if (left)
            log_event(LOG_WARN, "a changed setting takes effect only after a restart",
                      "section=%s key=%s", left->section, left->name);
        look_settings = look_settings_of(p);
        look_set(&d->look, &look_settings);
        log_set_level(p->o->log_level ? p->o->log_level : p->conf->dqd.log_level);
        conf_free(fresh);
    }
    if (!d->ctx.runner_gone) {
        link_send_reload(d->ctx.link, tags_table(&d->tags)->handlers->digest);
        watch_reload(&p->watch, when_steady_us());
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
        bool again = p->asked_to_end;
        p->asked_to_end = true;
        if (p->phase == PHASE_RUN || (p->phase == PHASE_DRAIN && !again))
            drain(p, "asked to stop; waiting for running handlers",
                  p->conf->dqd.drain_timeout_ms * 1000);
        else if (p->phase == PHASE_DRAIN)
            kill_all(p, "asked to stop again; killing handlers");
    }
}

/* --- the loop --- */

/* Each heartbeat comes with a new status line. */
static void tell_systemd(struct poller *p, int64_t now_us)
{
    const struct duties *d = &p->duties;
    BUF_LOCAL struct buf status = BUF_INIT;

    if (p->watchdog_every_us && now_us >= p->watchdog_us) {
        notify_send("WATCHDOG=1");
        p->watchdog_us = now_us + p->watchdog_every_us;
    }
    if (p->phase != PHASE_RUN || p->status_us == d->registry.beat_us)
        return;
    p->status_us = d->registry.beat_us;
    buf_str(&status, d->ctx.quiet ? "quiet, " : "");
    notify_put_status(&status, &d->tags, look_running(&d->look), d->ctx.slots, now_us);
    notify_send("STATUS=%s", status.data);
}

/* Takes what has happened, does what is due, and returns when to be called again. */
static int64_t tick(struct poller *p)
{
    struct duties *d = &p->duties;
    struct err err = {0};
    int64_t now_us = when_steady_us(), next_us;

    take_reports(p);
    if (!d->ctx.runner_gone)
        link_reap_adopted(d->ctx.link);
    watch_run(&p->watch, &d->ctx, jobs(p) > 0, now_us);
    duty_take_wakeup(d);
    log_catch_up();
    log_fold_flush(now_us);

    if (duty_run(d, &err) < 0)
        end(p, err.code, err.text);
    if (!d->ctx.runner_gone && link_flush(d->ctx.link, &err) < 0)
        take_reports(p); /* what it said before it died still counts */
    tell_systemd(p, now_us);
    advance(p);
    unlock(p);

    next_us = MIN(duty_next(d), wakeup_next(&d->wakeup));
    next_us = MIN(next_us, watch_next(&p->watch, &d->ctx, jobs(p) > 0));
    next_us = MIN(next_us, p->watchdog_every_us ? p->watchdog_us : NEVER_US);
    next_us = MIN(next_us, log_fold_next());
    return MIN(next_us, next_phase(p));
}

static void wait_until(struct poller *p, int64_t until_us)
{
    struct duties *d = &p->duties;
    struct pollfd fds[] = {{.fd = p->signal_fd, .events = POLLIN},
                           {.fd = -1, .events = POLLIN},
                           {.fd = wakeup_fd(&d->wakeup), .events = POLLIN}};
    int64_t wait_us = until_us == NEVER_US ? NEVER_US : until_us - when_steady_us();
    struct timespec ts;

    if (!d->ctx.runner_gone) {
        fds[1].fd = link_fd(d->ctx.link);
        if (jobs(p) > look_running(&d->look) + QUEUE_LONG && !flight_held(&d->flight, JOB_SHORT) &&
            !flight_held(&d->flight, JOB_LONG)) {
            fds[1].events = 0;
            wait_us = MIN(wait_us, REPORTS_US);
        }
        if (link_wants_write(d->ctx.link))
            fds[1].events |= POLLOUT;
    }
    if (wait_us < 0)
        wait_us = 0;
    ts = (struct timespec){.tv_sec = wait_us / 1000000, .tv_nsec = wait_us % 1000000 * 1000};
    (void)ppoll(fds, sizeof fds / sizeof fds[0], wait_us == NEVER_US ? NULL : &ts, NULL);
    if (fds[2].revents)
        wakeup_ring(&d->wakeup);
    if (fds[0].revents)
        take_signals(p);
}

/* --- from start to end --- */

static int start(struct poller *p, struct err *err)
{
    struct duties *d = &p->duties;
    struct runner_options r = {.handlers_path = p->conf->dqd.handlers,
                               .handlers = tags_table(&d->tags)->handlers,
                               .slots = (int)d->ctx.slots,
                               .default_user = p->conf->dqd.user,
                               .config = p->conf->path,
                               .log_level = log_level()};
    int rc = startup_signals(&p->signal_fd, err);

    if (rc == 0)
        rc = link_start(&r, &d->ctx.link, err);
    if (rc == 0)
        rc = db_connect_load_secret(d->ctx.db, err);
    if (rc == 0)
        wakeup_listen(&d->wakeup, p->conf);
    if (rc == 0)
        rc = startup_drop_root(p->conf->dqd.user, &p->dropped, err);
    startup_lift_file_limit(&p->file_limit);
    return rc;
}

static void finish(struct poller *p)
{
    struct duties *d = &p->duties;

    wakeup_end(&d->wakeup);
    minute_leave(&d->minute);
    breaker_leave(&d->breakers);
    registry_leave(&d->registry);
    served_leave(&d->served, p->o->mode == POLLER_RESIDENT);
    if (d->ctx.link)
        link_stop(d->ctx.link, STOP_MS);
    care_say_left(&d->tags);
    log_fold_flush(INT64_MAX);
    duty_free(d);
    db_free(d->ctx.db);
    conf_free(p->conf);
    if (p->signal_fd >= 0)
        close(p->signal_fd);
    if (p->lock_fd >= 0)
        close(p->lock_fd);
}

/* A dead runner took its rights with it; a fresh start of the program has them again, unless we
 * gave up root. */
static void restart(const struct poller *p)
{
    if (!p->duties.ctx.runner_gone || p->dropped || !p->o->argv || p->o->mode != POLLER_RESIDENT ||
        p->asked_to_end)
        return;
    log_event(LOG_NOTE, "restarting", "%s", "");
    poll(NULL, 0, RESTART_MS);
    setrlimit(RLIMIT_FSIZE, &p->file_limit);
    execv("/proc/self/exe", p->o->argv);
    log_event(LOG_ERROR, "cannot restart", "error=%s", strerror(errno));
}

static int init(struct poller *p, struct poller_options *o, struct err *err)
{
    struct context *ctx = &p->duties.ctx;
    struct look_settings look;
    struct db_session session = startup_session(o->conf);
    int64_t now_us = when_steady_us();

    *p = (struct poller){.o = o,
                         .conf = o->conf,
                         .signal_fd = -1,
                         .lock_fd = o->lock_fd,
                         .end_us = o->mode == POLLER_FOR ? now_us + o->for_ms * 1000 : NEVER_US,
                         .drain_until_us = NEVER_US,
                         .watchdog_every_us = notify_watchdog_us()};
    *ctx = (struct context){.conf = o->conf,
                            .db = db_new(&o->conf->mysql),
                            .slots = (uint32_t)(o->slots ? o->slots : o->conf->dqd.slots),
                            .once = o->mode == POLLER_ONCE};
    db_session_set(ctx->db, &session);
    look = look_settings_of(p);
    duty_init(&p->duties, &look, o->handlers, o->tags, mode_name(o->mode),
              o->mode != POLLER_RESIDENT);
    p->duties.wakeup.off = ctx->once;
    p->duties.take_reports = take_reports;
    p->duties.take_arg = p;
    watch_init(&p->watch, now_us);
    return startup_owner(&ctx->owner, p->host, sizeof p->host, err);
}

int poller_run(struct poller_options *o, struct err *err)
{
    struct poller p;
    int rc = init(&p, o, err);

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
    restart(&p);
    return rc;
}
