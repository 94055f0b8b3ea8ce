/*
 * runner.h - the runner process as its poller sees it: a link over which jobs go one way and
 * reports the other.
 *
 * A job is one handler process: one task, or a batch of them. The runner knows no SQL and holds no
 * credentials; it never waits for the database, and it trusts nobody's word for what to execute but
 * its own copy of the handlers file. It enforces: timeouts; the deadline of each job (the lease, on
 * the steady clock of the host): a job whose deadline comes without a renewal is killed with KILL
 * before it; the death of the poller (end of file on the link): every handler is killed (TERM,
 * grace bounded by the deadline, KILL).
 */
#ifndef DQ_RUNNER_RUNNER_H
#define DQ_RUNNER_RUNNER_H

#include "base/err.h"
#include "base/task.h"
#include "conf/handlers.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Calls warn for each handler that could not be started as things are now: its program or its
 * directory is not there. What a shell's line calls is not looked at. Returns how many. Needs no
 * runner; asks the account database and the file system. */
size_t runner_check(const struct handlers *handlers, const char *default_user,
                    void (*warn)(const struct handlers *handlers, const struct handler *h,
                                 const char *why));

struct runner_link;

struct runner_options {
    const char *handlers_path;
    /* the table to begin with; the child keeps its own copy (it is forked) */
    const struct handlers *handlers;
    int slots; /* handler processes at a time */
    /* started as root: account of handlers without `user:`; NULL or "": stay */
    const char *default_user;
    int log_level;
};

/* Forks the runner. Call before any credential was read and before threads or connections exist; 0
 * to 2 are open. The child never returns from here; it keeps no other descriptor of the caller's,
 * and blocks TERM, INT and HUP: the poller alone decides. */
int runner_start(const struct runner_options *o, struct runner_link **ret, struct err *err)
    __attribute__((warn_unused_result));

/* to poll(2) for reading; also for writing while runner_wants_write */
int runner_fd(const struct runner_link *l);
pid_t runner_pid(const struct runner_link *l);
bool runner_wants_write(const struct runner_link *l);

#define RUNNER_TASKS_MAX 8192

struct runner_job {
    uint32_t job;    /* the caller's number, unique while it lives */
    uint64_t digest; /* of the handlers table that `handler` indexes */
    uint32_t handler;
    const char *tag;  /* max_running is counted by tag */
    int64_t start_us; /* steady clock, microseconds: not before; 0: at once */
    /* likewise: not after, unless runner_send_vouch says so later: the task may have been
     * cancelled */
    int64_t vouched_us;
    int64_t deadline_at; /* steady clock, ms: killed before this unless renewed */
    /* sealed memfd at offset 0: the body, or for a batch JSON lines; the link closes it. -1: an
     * empty stdin */
    int stdin_fd;
    const uint64_t *ids; /* the tasks, in the order of the lines */
    uint32_t count;      /* 1 to RUNNER_TASKS_MAX; 1 unless the handler has batch > 1 */
    /* of the single task; unused for a batch (what it needs is in the lines) */
    const char *key; /* NULL: DQ_KEY is empty */
    uint32_t attempt, max_attempts;
    int64_t expected_at;
    uint64_t token; /* DQ_TOKEN: grows with every attempt of a task */
};
/* Queues a job: it starts at start_us, at once or when slots and its tag's max_running allow;
 * queued jobs of different tags take turns, and the last quarter of the slots (at least one, where
 * there are two) is kept for tags that have nothing running. Nothing here blocks: messages gather
 * in memory until runner_flush, or until a packet is full. */
void runner_send_job(struct runner_link *l, const struct runner_job *j);
/* renewed */
void runner_send_deadline(struct runner_link *l, const uint32_t *jobs, size_t count,
                          int64_t deadline_at);
/* Every job that waits may start until then: none of them that was cancelled or taken back has been
 * kept (runner_send_kill). */
void runner_send_vouch(struct runner_link *l, int64_t until_us);
enum runner_kill {
    RUNNER_KILL_CANCELLED,
    RUNNER_KILL_LOST,
    RUNNER_KILL_SHUTDOWN,
    RUNNER_KILL_UNSTARTED
};
/* TERM, then KILL after the handler's kill_grace (or before its deadline). A queued job is simply
 * returned; with RUNNER_KILL_UNSTARTED one that has begun is left alone. The job's reports still
 * come; a task's outcome in them is OUTCOME_CANCELLED or OUTCOME_KILLED, even where the process
 * took TERM and ended with status 0. */
void runner_send_kill(struct runner_link *l, uint32_t job, enum runner_kill why);
void runner_send_return(struct runner_link *l); /* give back every job that has not started */
/* Reads the handlers file again (once more if it is being read already). Jobs name the table by
 * digest: that of the caller's stays known. */
void runner_send_reload(struct runner_link *l, uint64_t digest);
void runner_send_ping(struct runner_link *l, uint64_t n);
/* 0: all is sent; 1: some waits; ERR_SYSTEM: the runner is gone (what it had sent can still be
 * read). */
int runner_flush(struct runner_link *l, struct err *err) __attribute__((warn_unused_result));

enum runner_event_type {
    RUNNER_STARTED, /* job, pid, at */
    RUNNER_RESULT,  /* one task of a job has ended (before the process has, for a batch verdict) */
    /* job: the process is gone and reaped, every task of it was reported by RESULT */
    RUNNER_ENDED,
    RUNNER_RETURNED, /* job: given back as a whole, no task of it has run. error says why where it
                        is a fault. Comes after STARTED where the process ended with 126 or 127 */
    RUNNER_RELOADED, /* digest of the table now in use and the text that it was made of; error if
                        the file was refused (old one kept) */
    RUNNER_PONG,     /* n */
    RUNNER_GONE,     /* end of file: the runner died; see runner_cleared for what it had started */
};
struct runner_event {
    enum runner_event_type type;
    uint32_t job;
    pid_t pid;     /* STARTED: also the session */
    int64_t at_us; /* STARTED: steady clock, microseconds */
    /* RESULT */
    uint64_t id;
    enum task_outcome outcome; /* DONE, EXIT, SIGNAL, TIMEOUT, CANCELLED, KILLED, VERDICT */
    bool permanent;            /* not to be retried, whatever the ladder says */
    int64_t retry_after_ms;    /* a verdict's `after`; -1: by the ladder */
    int exit_code, signal;
    int64_t finish_us;  /* steady clock, microseconds */
    const char *error;  /* NULL: none. Valid until the next call of runner_next */
    const void *output; /* the tail of what the process wrote; a verdict has none */
    size_t output_size;
    /* RETURNED */
    bool cannot_start; /* 126, 127, EMFILE, ...: the tag should rest on this host */
    /* RELOADED: the digest. PONG: the number asked with */
    uint64_t n;
    /* RELOADED: a sealed memfd at an unknown offset, valid until the next call of runner_next. -1:
     * see error */
    int text_fd;
};
/* The next report: 1, or 0 when there is none yet (never blocks). After RUNNER_GONE: always 0. */
int runner_next(struct runner_link *l, struct runner_event *ret);

/* Whether the handler of a job that was sent may have begun, though nothing was heard of it: to be
 * asked after RUNNER_GONE, when the runner died before it could say so. */
bool runner_job_begun(const struct runner_link *l, uint32_t job);

/* Also after RUNNER_GONE: whether everything that belonged to the sessions of its handlers has been
 * found and killed, so that nothing of them runs beside the next attempt. If not, only the end of
 * the lease may give their tasks to others. */
bool runner_cleared(const struct runner_link *l);

/* Makes the calling process, root's, one of that account with all its groups, for good; all it
 * keeps is the right to kill its runner and what that has started, if the system lets it. Asks the
 * account database. */
int runner_drop_root(const char *user, struct err *err) __attribute__((warn_unused_result));

/* Kills the runner. False: this account has no right to. */
bool runner_kill(struct runner_link *l);
/* Lets go of a runner that neither answers nor can be killed: the next report is GONE. */
void runner_give_up(struct runner_link *l);

/* Closes the link (the runner kills what still runs and exits), reaps it, frees. Blocks until it is
 * gone, at most timeout_ms, then KILL. NULL is fine. */
void runner_stop(struct runner_link *l, int64_t timeout_ms);

#endif
