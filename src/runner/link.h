/*
 * link.h - the runner as its poller sees it: a link over which orders go one way and reports come
 * back (message.h).
 *
 * The runner is a process that starts handlers (runner.h). It knows no SQL and holds no
 * credentials; it never waits for the database, and it trusts nobody's word for what to execute but
 * its own copy of the handlers file. It enforces: timeouts; the deadline of each job (the lease, on
 * the steady clock of the host): a job whose deadline comes without a renewal is killed with KILL
 * before it; the death of the poller (end of file on the link): every handler is killed (TERM,
 * grace bounded by the deadline, KILL).
 */
#ifndef DQ_RUNNER_LINK_H
#define DQ_RUNNER_LINK_H

#include "base/err.h"
#include "runner/message.h"
#include "runner/runner.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct link;

/* Forks the runner. Call before any credential was read and before threads or connections exist; 0
 * to 2 are open. The child never returns from here; it keeps no other descriptor of the caller's,
 * and blocks TERM, INT and HUP: the poller alone decides. */
int link_start(const struct runner_options *o, struct link **ret, struct err *err)
    __attribute__((warn_unused_result));

/* to poll(2) for reading; also for writing while link_wants_write */
int link_fd(const struct link *l);
pid_t link_pid(const struct link *l); /* the runner's */
bool link_wants_write(const struct link *l);

/* ---- orders. None of them blocks: they gather in memory until link_flush, or until a packet is
 * full. `number` is a job's, unique while it lives. */

/* Queues a job: it starts at start_us, at once or when slots and its tag's max_running allow;
 * queued jobs of different tags take turns, and the last quarter of the slots (at least one, if
 * there are two) is kept for tags that have nothing running. The link closes j->stdin_fd. */
void link_send_job(struct link *l, uint32_t number, const struct message_job *j);
/* renewed */
void link_send_deadline(struct link *l, const uint32_t *numbers, size_t count, int64_t deadline_at);
/* Every job that waits may start until then: none of them that was cancelled or taken back has been
 * kept (link_send_kill). */
void link_send_vouch(struct link *l, int64_t until_us);
/* TERM, then KILL after the handler's kill_grace (or before its deadline). A queued job is simply
 * returned; with MESSAGE_KILL_UNSTARTED one that has begun is left alone. The job's reports still
 * come; a task's outcome in them is OUTCOME_CANCELLED or OUTCOME_KILLED, even if the process took
 * TERM and ended with status 0. */
void link_send_kill(struct link *l, uint32_t number, enum message_kill_reason reason);
void link_send_return(struct link *l); /* give back every job that has not started */
/* Reads the handlers file again (once more if it is being read already). Jobs name the table by
 * digest: that of the caller's stays known. */
void link_send_reload(struct link *l, uint64_t digest);
void link_send_ping(struct link *l, uint64_t n);
/* 0: all is sent; 1: some waits; ERR_SYSTEM: the runner is gone (what it had sent can still be
 * read). */
int link_flush(struct link *l, struct err *err) __attribute__((warn_unused_result));

/* ---- reports */

/* The next report: 1, or 0 when there is none yet (never blocks). What it points to, and its
 * text_fd, are valid until the next call. MESSAGE_GONE: the runner died, see link_cleared for what
 * it had started; after that always 0. */
int link_next(struct link *l, struct message *ret);

/* Whether the handler of a job that was sent may have begun, though nothing was heard of it: to be
 * asked after MESSAGE_GONE, when the runner died before it could say so. */
bool link_job_begun(const struct link *l, uint32_t number);

/* Also after MESSAGE_GONE: whether everything that belonged to the sessions of its handlers has
 * been found and killed, so that nothing of them runs beside the next attempt. If not, only the end
 * of the lease may give their tasks to others. */
bool link_cleared(const struct link *l);

/* ---- its end */

/* Kills the runner. False: this account has no right to. */
bool link_kill(struct link *l);
/* Lets go of a runner that neither answers nor can be killed: the next report is GONE. */
void link_give_up(struct link *l);

/* Closes the link (the runner kills what still runs and exits), reaps it, frees. Blocks until it is
 * gone, at most timeout_ms, then KILL. NULL is fine. */
void link_stop(struct link *l, int64_t timeout_ms);

#endif
