/*
 * crew.c - moves jobs from the queue to a process and to their end.
 *
 * Invariant: a job is either queued or has a process; a process with a job has a slot, and is being
 * started, runs, or has ended except for the rest of its session. Every task of a started job gets
 * exactly one result, or the job as a whole is returned; a job ends when the leader of its session
 * does, and nothing of the session outlives it.
 *
 * A background process that stays in the session is killed at that moment, and output that it has
 * not written by then is lost. One that has made a session of its own (setsid) goes on without
 * supervision: if it holds the handler's stdout, its writes fail.
 */
#include "runner/crew.h"

#include "base/mem.h"
#include "base/when.h"
#include "runner/child.h"
#include "runner/keep.h"
#include "runner/notes.h"
#include "runner/reply.h"
#include "runner/start.h"
#include "runner/stop.h"
#include "runner/stream.h"
#include "runner/sweep.h"

#include <signal.h>
#include <sys/param.h>
#include <sys/wait.h>

#define STARTS 8                   /* per call */
#define LAST_READ_MAX (256 * 1024) /* the leader has ended, but others may still write */
#define TELL_MS 5000               /* between two reports of processes that stay */
#define ENDING_LOOK_MS 100         /* between two attempts to empty sessions */

void crew_watch_from(struct crew *w, int64_t at)
{
    if (at < w->watch_at)
        w->watch_at = at;
}

/* ---- jobs */

static void take(struct crew *w, struct job *j)
{
    queue_take(&w->queue, j);
    j->table->plans[j->order.handler].kept.waiting--;
}

/* Frees a job that is not queued and has no process. */
static void forget(struct crew *w, struct job *j)
{
    jobs_remove(&w->jobs, j);
    queue_leave(&w->queue, j);
    j->table->users--;
    job_free(j);
}

void crew_give_back(struct crew *w, struct job *j, int cannot_start, const char *why)
{
    crew_watch_from(w, keep_make_room(&w->jobs, cannot_start));
    take(w, j);
    reply_returned(w->c.out, j, cannot_start, why);
    forget(w, j);
}

/* All that wait for a process of this plan. */
static void give_back_all(struct crew *w, const struct plan *plan, int cannot_start,
                          const char *why)
{
    struct job *next;

    for (struct lane *l = w->queue.lanes, *after; l; l = after) {
        after = l->all_next; /* a lane is freed with its last job */
        for (struct job *j = l->first; j; j = next) {
            next = j->next;
            if (j->plan == plan)
                crew_give_back(w, j, cannot_start, why);
        }
    }
}

/* The job gets a slot. It may have a process already, or one is being started for it. */
static void take_slot(struct crew *w, struct job *j)
{
    take(w, j);
    queue_started(&w->queue, j->lane, w->slots - (int)w->jobs.taken, w->slots);
    *queue_last_start(j) = when_steady_us();
    w->jobs.taken++;
}

/* Starts that waited for a process would come together. One may be late, or none would ever come if
 * each process takes long to be ready. But none may come once a task of the job has expired. */
static bool is_late(const struct job *j)
{
    return (j->order.late_us && *queue_last_start(j) > j->order.late_us) ||
           (j->order.expires_us && when_steady_us() >= j->order.expires_us);
}

static void leave_slot(struct crew *w, struct job *j)
{
    queue_ended(&w->queue, j->lane);
    w->jobs.taken--;
}

/* Its start has failed or was given up. */
static void give_back_unstarted(struct crew *w, struct process *p, int cannot_start,
                                const char *why)
{
    struct job *j = p->job;

    w->launching--;
    jobs_remove_process(&w->jobs, p);
    if (!j)
        keep_ended(p, -1); /* an open stdin says that it was not retired */
    stream_close(p, &w->c);
    p->abandoned = true;
    crew_watch_from(w, keep_make_room(&w->jobs, cannot_start));
    if (!j) {
        if (cannot_start && !keep_can_wait(p))
            give_back_all(w, p->launch.plan, cannot_start, why);
        return;
    }
    leave_slot(w, j);
    process_leave(p);
    reply_returned(w->c.out, j, cannot_start, why);
    forget(w, j);
}

static void tell_soon(struct crew *w)
{
    w->tell_at = MIN(w->tell_at, MAX(when_steady() + TELL_MS / 5, w->tell_from));
    crew_watch_from(w, w->tell_at);
}

void crew_tell(struct crew *w, struct table *t)
{
    const int64_t now = w->tell_at == JOB_NEVER ? 0 : when_steady();

    if (now < w->tell_at)
        return;
    bool again = keep_tell(t, &w->jobs, w->c.out);
    w->tell_from = when_steady() + 1000 * (when_steady() - now);
    w->tell_at = again ? w->tell_from + TELL_MS : JOB_NEVER;
}

/* ---- deadlines */

static void watch_running(struct crew *w, struct process *p, int64_t now)
{
    struct err why = {0};
    int64_t next;

    if (!p->launching) {
        if (keep_is(p))
            keep_watch(p, now);
        crew_watch_from(w, stop_watch(p, now));
        w->sweep |= (p->stop != PROCESS_RUNS && !p->term_swept) || (p->killed && !p->kill_swept);
    } else if (start_watch(p, now, &next, &why)) {
        give_back_unstarted(w, p, why.code, why.code ? why.text : NULL);
    } else {
        crew_watch_from(w, next);
    }
}

static void watch_waiting(struct crew *w, int64_t now)
{
    struct job *next;

    for (struct lane *l = w->queue.lanes, *after; l; l = after) {
        after = l->all_next; /* a lane is freed with its last job */
        for (struct job *j = l->first; j; j = next) {
            next = j->next;
            if (job_lease_term_at(j) <= now)
                crew_give_back(w, j, 0, NULL);
            else
                crew_watch_from(w, job_lease_term_at(j));
        }
    }
}

void crew_watch(struct crew *w)
{
    int64_t now = when_steady();

    if (now < w->watch_at)
        return;
    w->watch_at = w->tell_at;
    for (size_t i = w->jobs.running_count;
         i-- > 0;) /* the last one takes the place of one that leaves */
        watch_running(w, w->jobs.running[i], now);
    watch_waiting(w, now);
    if (w->ending)
        crew_watch_from(w, w->ending_at);
}

void crew_stop(struct crew *w, struct process *p, enum process_stop why)
{
    int64_t now = when_steady();

    if (p->kept.idle)
        p->until_at = now; /* the end of file comes first */
    else
        stop_process(p, why, now);
    watch_running(w, p, now);
}

/* ---- starts */

/* Its start is over. */
static void launched(struct crew *w, struct process *p)
{
    p->launching = false;
    launch_over(&p->launch);
    if (p->launch.failure.code) {
        *p->launch.note = NOTES_CLEARED;
        give_back_unstarted(w, p, p->launch.failure.code, p->launch.failure.text);
        process_free(p);
        return;
    }
    w->launching--;
    jobs_set_pid(&w->jobs, p, p->launch.pid);
    p->begun_us = p->launch.begun_us;
    p->until_at = p->begun_us / 1000 + p->launch.plan->handler->timeout_ms;
    p->until_why = PROCESS_TIMED_OUT;
    if (p->launch.given_up)
        child_signal(p->pid, SIGKILL);
    else if (keep_is(p))
        keep_started(p);
    else
        reply_started(w->c.out, p);
    if (p->stop != PROCESS_RUNS) /* it was stopped during its start */
        child_signal(p->pid, SIGTERM);
    watch_running(w, p, when_steady());
}

/* False: the start hangs, and another thread has taken over. */
static bool launch(struct crew *w, struct process *p)
{
    jobs_add_process(&w->jobs, p);
    p->launching = true;
    w->launching++;
    if (!launch_run(w->c.launcher, &p->launch))
        return false;
    launched(w, p);
    return true;
}

static void give(struct crew *w, struct process *p, struct job *j)
{
    stream_read(&p->streams[PROCESS_OUT], &w->c, LAST_READ_MAX); /* what came before the job */
    if (j->number < NOTES_MAX)
        w->notes[j->number] = p->pid;
    take_slot(w, j);
    keep_give(p, j, &w->c);
    reply_started(w->c.out, p);
    watch_running(w, p, when_steady());
}

/* An idle process that says nothing more; NULL: there is none. */
static struct process *take_idle(struct crew *w, struct plan *plan)
{
    struct process *p;

    while ((p = keep_take(plan, when_steady()))) {
        stream_read(&p->streams[PROCESS_REPLY], &w->c, LAST_READ_MAX);
        if (p->kept.idle)
            break;
        watch_running(w, p, when_steady());
    }
    return p;
}

/* Gives the job to a process that stays. Until there is one, it waits. False: as start. */
static bool start_kept(struct crew *w, struct job *j)
{
    struct plan *plan = &j->table->plans[j->order.handler];
    MEM_LOCAL char *why = keep_refusal(plan);
    struct process *p;
    struct err e = {0};

    if (why) {
        give_back_all(w, plan, ERR_SYSTEM, why);
    } else if (j->order.stdin_fd == PROTO_FD_LOST) {
        crew_give_back(w, j, ERR_TRANSIENT, "stdin did not arrive: too many open files");
    } else if ((p = take_idle(w, plan))) {
        give(w, p, j);
    } else if (!plan->kept.why && keep_wants(plan)) {
        int rc = start_ahead(j->table, plan, &w->c, keep_note(w->notes), &p, &e);
        if (rc == 0) {
            keep_begin(p);
            tell_soon(w);
            return launch(w, p);
        }
        give_back_all(w, plan, e.code, e.text);
    }
    return true;
}

/* False: the start hangs, and another thread has taken over. */
static bool start(struct crew *w, struct job *j)
{
    struct err e = {0};

    if (j->plan->contract->stays)
        return start_kept(w, j);
    if (start_job(j, &w->c, j->number < NOTES_MAX ? &w->notes[j->number] : NULL, &e) != 0) {
        crew_give_back(w, j, e.code, e.text);
        return true;
    }
    take_slot(w, j);
    return launch(w, j->process);
}

enum crew_starts crew_start(struct crew *w)
{
    for (int n = 0; n < STARTS; n++) {
        struct job *j =
            queue_pick(&w->queue, w->slots - (int)w->jobs.taken, w->slots, when_steady_us());
        if (!j)
            return CREW_DONE;
        if (job_lease_term_at(j) <= when_steady() || is_late(j))
            crew_give_back(w, j, 0, NULL);
        else if (!start(w, j))
            return CREW_LEFT;
    }
    return CREW_MORE;
}

/* ---- starts that took long and are over, and ends */

static void take_launches(struct crew *w)
{
    struct launch *next;

    for (struct launch *a = launcher_take(w->c.launcher); a; a = next) {
        next = a->next;
        if (a->process->abandoned)
            process_free(a->process);
        else
            launched(w, a->process);
    }
}

static void return_unable(struct job *j, struct process_context *c, int status)
{
    struct err e = {0};

    reply_explain(&j->tail, &e, "exit status %d (%s)", status,
                  status == 127 ? "not found" : "not executable");
    reply_returned(c->out, j, ERR_SYSTEM, e.text);
}

static void read_rest(struct process *p, struct process_context *c)
{
    if (p->job && p->job->whole)
        reply_fresh(c->out, p->job); /* makes room */
    for (int i = PROCESS_REPLY; i >= 0; i--) {
        stream_read(&p->streams[i], c, LAST_READ_MAX);
        stream_finish(&p->streams[i], c);
    }
    if (p->job && p->job->followed)
        reply_fresh(c->out, p->job);
}

/* The same as finish, of a process that stays. */
static void finish_kept(struct process *p, struct process_context *c)
{
    struct job *j = p->job;
    struct err why = {0};

    if (p->launch.given_up && start_was_none(p, &why) && why.code)
        keep_refuse(p->launch.plan, why.text);
    read_rest(p, c);
    bool unread = j && j->open && keep_unread(p);
    int status = child_reap(p->pid);
    keep_ended(p, status);
    if (unread)
        reply_returned(c->out, j, 0, NULL);
    else if (keep_has_answered(p))
        reply_answered(c->out, j);
    else if (j)
        reply_ended(c->out, p, status);
}

/* The leader has ended, and nothing else of its session is left: reaps it and reports the rest. */
static void finish(struct process *p, struct process_context *c)
{
    struct job *j = p->job;
    struct err why = {0};

    if (p->launch.given_up && start_was_none(p, &why)) {
        child_reap(p->pid);
        reply_returned(c->out, j, why.code, why.code ? why.text : NULL);
        return;
    }
    if (p->launch.given_up)
        reply_started(c->out, p);
    read_rest(p, c);
    int status = child_reap(p->pid), code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if ((code == 126 || code == 127) && p->stop == PROCESS_RUNS && j->open == j->order.count &&
        !j->replied)
        return_unable(j, c, code);
    else
        reply_ended(c->out, p, status);
}

/* All is reported, and its process works on it no more. */
static void end_job(struct crew *w, struct job *j)
{
    if (j->number < NOTES_MAX)
        w->notes[j->number] = NOTES_CLEARED;
    leave_slot(w, j);
    forget(w, j);
}

void crew_heard(struct crew *w, struct process *p)
{
    struct job *j = p->job;

    if (!keep_is(p))
        return;
    if (keep_has_answered(p) && p->stop == PROCESS_RUNS) {
        if (j->whole)
            reply_fresh(w->c.out, j); /* makes room */
        stream_read(&p->streams[PROCESS_OUT], &w->c, LAST_READ_MAX);
        if (j->followed)
            reply_fresh(w->c.out, j);
        stream_resume(&p->streams[PROCESS_OUT], &w->c);
        reply_answered(w->c.out, j);
        process_leave(p);
        end_job(w, j);
        keep_done(p, when_steady());
    }
    crew_watch_from(w, p->until_at);
}

/* The leader has ended. */
static void end(struct crew *w, struct process *p)
{
    struct job *j = p->job;

    if (keep_is(p))
        keep_leave(p);
    if (!sweep_ended(p, &w->orphans)) {
        w->ending += !p->ending;
        p->ending = true;
        w->ending_at = when_steady() + ENDING_LOOK_MS;
        crew_watch_from(w, w->ending_at);
        return;
    }
    w->ending -= p->ending;
    jobs_remove_process(&w->jobs, p);
    *p->launch.note = NOTES_CLEARED;
    if (keep_is(p)) {
        finish_kept(p, &w->c);
        tell_soon(w);
    } else {
        finish(p, &w->c);
    }
    stream_close(p, &w->c);
    process_free(p);
    if (j)
        end_job(w, j);
}

/* Whether it is the process of a start that is not over yet. */
static bool is_launching(const struct crew *w, pid_t pid)
{
    for (size_t i = 0; i < w->jobs.running_count; i++)
        if (w->jobs.running[i]->launching && *w->jobs.running[i]->launch.note == pid)
            return true;
    return false;
}

/* A leader that has to stay a zombie hides others from child_ended, so each is checked. */
static void reap_one_by_one(struct crew *w)
{
    int64_t now = when_steady();
    bool due = now >= w->ending_at;

    for (size_t i = w->jobs.running_count; i-- > 0;) {
        struct process *p = w->jobs.running[i];
        if (p->pid && (p->ending ? due : child_has_ended(p->pid)))
            end(w, p);
    }
    orphans_look(&w->orphans, now);
    for (size_t i = 0; i < w->orphans.count; i++) {
        pid_t pid = w->orphans.items[i].pid;
        if (!jobs_led_by(&w->jobs, pid) && !is_launching(w, pid) && child_has_ended(pid))
            child_reap(pid);
    }
}

void crew_reap(struct crew *w)
{
    pid_t pid;

    take_launches(w);
    if (w->ending)
        reap_one_by_one(w);
    while (!w->ending && (pid = child_ended()) > 0) {
        struct process *p = jobs_led_by(&w->jobs, pid);
        if (p)
            end(w, p);
        else if (w->launching && is_launching(w, pid))
            break; /* the thread that has started it will report it at once */
        else
            child_reap(pid); /* an orphan, or from a start that was given up */
    }
    if (w->ending)
        reap_one_by_one(w);
}

void crew_init(struct crew *w, int slots, volatile pid_t *notes)
{
    w->slots = slots;
    w->notes = notes;
    w->watch_at = w->tell_at = JOB_NEVER;
    orphans_init(&w->orphans);
}

void crew_add(struct crew *w, struct job *j, struct table *t)
{
    j->table = t;
    j->plan = &t->plans[j->order.handler];
    t->plans[j->order.handler].kept.waiting++;
    t->users++;
    jobs_add(&w->jobs, j);
    queue_add(&w->queue, j, j->order.tag);
    crew_watch_from(w, job_lease_term_at(j));
}

void crew_sweep(struct crew *w)
{
    if (w->sweep)
        sweep_signals(&w->jobs);
    w->sweep = false;
}

void crew_renew(struct crew *w)
{
    for (size_t i = w->jobs.running_count; i-- > 0;)
        if (w->jobs.running[i]->kept.idle && w->jobs.running[i]->table->old)
            crew_stop(w, w->jobs.running[i], PROCESS_RETIRED);
}

bool crew_has_ending(const struct crew *w)
{
    return w->ending && when_steady() >= w->ending_at;
}
