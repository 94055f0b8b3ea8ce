/*
 * link.h - the poller's side of the runner: a link that takes orders and delivers reports
 * (message.h).
 *
 * The runner is a process that starts handlers (runner.h). It knows no SQL and holds no
 * credentials, it never waits for the database, and it executes only commands of its own copy of
 * the handlers file. It enforces timeouts and the deadline of each job (the lease, on the steady
 * clock of the host): a job that is not renewed in time is killed before its deadline. If the
 * poller dies (end of file on the link), it ends every handler: TERM, a grace bounded by the
 * deadline, KILL.
 */
#ifndef DQ_RUNNER_LINK_H
#define DQ_RUNNER_LINK_H

#include "base/err.h"
#include "conf/handlers.h"
#include "runner/message.h"
#include "runner/runner.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct link;

/* Forks the runner. Call it before any credential is read and before there are threads or
 * connections; 0 to 2 must be open. The child does not return; it closes all other descriptors of
 * the caller and blocks TERM, INT and HUP, because the poller decides what to do then. */
int link_start(const struct runner_options *o, struct link **ret, struct err *err)
    __attribute__((warn_unused_result));

/* to poll(2) for reading; also for writing while link_wants_write */
int link_fd(const struct link *l);
pid_t link_pid(const struct link *l); /* the runner's */
bool link_wants_write(const struct link *l);

/* ---- orders. None of these blocks: orders are kept in memory until link_flush, or until a packet
 * is full. `number` identifies a job; the caller chooses it, unique until the job ends. */

/* Queues a job. It starts at start_us, or later if slots or its tag's max_running do not allow it
 * then. Tags take turns, and the last quarter of the slots (at least one, if there are two) is kept
 * for tags that have nothing running. The link closes j->stdin_fd and copies the rest. */
void link_send_job(struct link *l, uint32_t number, const struct message_job *j);
/* Queues a job of these tasks, with their bodies, for a handler of the table; only start_us,
 * vouched_us, late_us, expires_us and deadline_at are taken from times. 0, or nothing is queued:
 * ERR_SYSTEM, or ERR_DATA if a body is to blame. */
int link_send_tasks(struct link *l, uint32_t number, const struct handlers *h, uint32_t handler,
                    const struct task *tasks, uint32_t count, const struct message_job *times,
                    struct err *err) __attribute__((warn_unused_result));
/* The leases of these jobs were renewed. A deadline is never moved back. */
void link_send_deadline(struct link *l, const uint32_t *numbers, size_t count, int64_t deadline_at);
/* Every job that waits may start until then: those that were cancelled or taken back have been
 * killed (link_send_kill). */
void link_send_vouch(struct link *l, int64_t until_us);
/* Sends TERM, then KILL after the handler's kill_grace or before the deadline. A job that waits is
 * returned; MESSAGE_KILL_UNSTARTED has no effect on others. The job's reports still come: the
 * outcome of its tasks is OUTCOME_CANCELLED or OUTCOME_KILLED, even if the process exits with
 * status 0. */
void link_send_kill(struct link *l, uint32_t number, enum message_kill_reason reason);
/* Asks for the output of a job while it runs. The answer is one or more MESSAGE_CHUNK. */
void link_send_follow(struct link *l, uint32_t number, enum message_follow_what what);
void link_send_return(struct link *l); /* every job that has not started */
/* Makes the runner read the handlers file again; if it is being read, once more afterwards. digest:
 * of the caller's table, which stays known. */
void link_send_reload(struct link *l, uint64_t digest);
/* Ending dqds of this host run so many jobs of the tag, and so many of all tags. */
void link_send_elsewhere(struct link *l, const char *tag, uint32_t running, uint32_t all);
void link_send_ping(struct link *l, uint64_t n);
/* Sends what the socket takes. 0: everything was sent; 1: some is left; ERR_SYSTEM: the runner is
 * gone, but its reports can still be read. */
int link_flush(struct link *l, struct err *err) __attribute__((warn_unused_result));
/* The same between statements that may take long; a runner that is gone is reported by the next
 * link_flush. */
void link_push(struct link *l);

/* ---- reports */

/* The next report: 1, or 0 when there is none yet (never blocks). What it points to, and its
 * text_fd, are valid until the next call. MESSAGE_GONE: the runner died, see link_cleared for what
 * it had started; after that always 0. */
int link_next(struct link *l, struct message *ret);

/* After MESSAGE_GONE: whether the handler of a job that was sent may have begun, although STARTED
 * was not received. */
bool link_job_begun(const struct link *l, uint32_t number);

/* Reaps children other than a living runner: as process 1 of a container, dqd adopts the orphans of
 * other programs there. Does not block. */
void link_reap_adopted(const struct link *l);
/* After MESSAGE_GONE: whether all processes of the handlers' sessions were found and killed, so
 * that none of them runs beside the next attempt. If not, their tasks must be left to the end of
 * their leases. */
bool link_cleared(const struct link *l);

/* ---- its end */

/* Sends KILL to the runner. False: this account may not. */
bool link_kill(struct link *l);
/* Gives up a runner that neither answers nor can be killed: the next report is MESSAGE_GONE. Blocks
 * for up to 2 s. */
void link_give_up(struct link *l);

/* Closes the link, upon which the runner ends its handlers and exits; kills it after timeout_ms;
 * frees l. Blocks until it is gone. NULL is fine. */
void link_stop(struct link *l, int64_t timeout_ms);

#endif
