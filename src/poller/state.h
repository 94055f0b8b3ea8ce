/*
 * state.h - what the parts of the poller share. Private to src/poller.
 *
 * The poller is a set of duties (poller.c). Each says when it wants to run next and does one bounded piece of work when that time
 * has come; the tick runs those that are due and returns how long to wait. Times named _us are microseconds on the steady clock of
 * this host, times named _at are milliseconds on the database's clock: the two meet only in dbclock.c.
 */
#ifndef DQ_POLLER_STATE_H
#define DQ_POLLER_STATE_H

#include "poller/aside.h"
#include "poller/dbclock.h"
#include "poller/look.h"
#include "poller/poller.h"
#include "runner/runner.h"

#include "store/claim_ref.h"
#include "store/db.h"
#include "store/peek_store.h"
#include "store/rows.h"
#include "store/settle_store.h"
#include "store/task_array.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

/* Bodies that wait for a slot take at most this much memory; a single longer one is let through alone. */
#define BODIES_MOST ((size_t)16 << 20)

/* A handlers table stays until the last job that was started by it has ended. */
struct table {
    struct handlers *handlers;
    unsigned users; /* jobs, and the poller itself for the current one */
};

/* What this poller knows of a tag. */
struct tag_state {
    struct look_tag look; /* the first, so that tags_of finds the rest */
    char *name;
    int handler;            /* index in the current table; -1: none, or left out by --tag */
    bool selected;          /* by --tag */
    int64_t seen_us;        /* last look that had it */
    int64_t warned_us;      /* last time the log said that it has no handler; 0: never */
    struct aside aside;     /* due tasks whose rows could not be changed */
    int64_t careful_us;     /* until then a claim looks for locked rows first */
    int64_t bare_us;        /* until then it brings no bodies: some body_size of this tag was a lie */
    int64_t limit_since_us; /* since when its row of dq_tag is locked by somebody; 0: it is not */
    int64_t limit_said_us;  /* when that was logged; 0: it was not */
};

/* A task in flight. */
struct flight_task {
    uint64_t id, version;
    uint32_t attempt, max_attempts;
    int64_t expected_at;
    bool lost;  /* the row is no longer ours: whatever the handler does is not recorded */
    bool ended; /* its result has been queued for settling */
};

/* JOB_SHORT came with its bodies, those of a JOB_LONG are loaded when there is room for them. */
enum job_kind { JOB_SHORT, JOB_LONG };
enum job_state { JOB_HELD, JOB_SENT, JOB_STARTED };
/* A job: one handler process, one task or a batch. */
struct job {
    uint32_t number; /* index in poller.jobs */
    enum job_kind kind;
    enum job_state state;
    struct tag_state *tag;
    struct table *table;
    uint32_t handler;
    struct task *tasks; /* with bodies, until handed over; NULL afterwards */
    struct flight_task *flight;
    uint32_t count, open; /* tasks; of these not ended */
    uint32_t cursor;      /* where the next verdict is looked for first */
    size_t body_bytes;
    bool measured;       /* body_bytes is what the bodies really have */
    bool singly;         /* loading several at once failed */
    int64_t leased_us;   /* when the claim or the last renewal was sent */
    int64_t deadline_us; /* leased_us + lease: not ours for sure after this */
    int64_t start_us;    /* 0: not yet */
    pid_t pid;
    bool killed; /* a kill was sent */
};

/* Oldest first. */
struct held_jobs {
    struct job **jobs;
    size_t count, cap;
};

struct settle_item {
    struct settlement s; /* error and output are owned */
    int64_t queued_us;
    int64_t leased_us; /* as of the job: the task stays ours until its result is recorded */
    int64_t again_us;  /* it could not be recorded, and is tried again then; 0: not tried yet */
    int64_t hold_us;   /* how long it was kept back last */
    bool said;         /* that was logged */
};

/* The file that others of this host open when something has just become due. */
struct wake {
    int fd; /* to poll(2) for reading: it was opened. -1: none, as for the others */
    int file_fd, dir_fd;
    char name[48];
    bool rung;       /* it was opened */
    int64_t next_us; /* it is not looked at before */
};

enum poller_phase { PHASE_RUN, PHASE_DRAIN, PHASE_KILL, PHASE_END };

/* What is wrong with one duty, though the database is there. */
#define DUTY_COUNT 9
struct duty_trouble {
    int64_t since_us; /* 0: it works */
    struct err said;  /* what was logged last */
    int64_t said_us;
    bool open;        /* it was logged, and that it works again was not */
    int64_t retry_us; /* not before; 0: it is not put off */
    int64_t backoff_us;
};

struct poller {
    struct poller_options *o;
    struct conf *conf;
    struct table *table; /* current */
    int64_t
        reload_us; /* the runner was asked to read the handlers file then; 0: it has answered, or the log says that it has not */
    struct db *db;
    struct runner_link *link;
    struct claim_owner owner;
    struct dbclock clock;
    int signal_fd, lock_fd;
    int slots;
    bool dropped;             /* gave up root: cannot start another runner */
    struct rlimit file_limit; /* RLIMIT_FSIZE, as it was given */

    enum poller_phase phase;
    int64_t end_us;         /* POLLER_FOR: claims end; else NEVER_US */
    int64_t drain_until_us; /* PHASE_DRAIN: kill then; NEVER_US: no limit */
    int64_t give_up_us;     /* PHASE_DRAIN: results that cannot be settled are left to the lease */
    bool runner_gone;
    bool asked_to_end;  /* TERM or INT came */
    struct err failure; /* why it ends, code 0: as asked */

    struct tag_state **tags; /* by name */
    size_t tag_count, tag_cap;

    struct job **jobs; /* by number; NULL: free */
    size_t job_cap, job_count;
    size_t job_free;          /* where to look for a free number */
    struct held_jobs held[2]; /* JOB_HELD by kind, so that no short body waits for the loading of a long one */
    size_t sent_bytes[2];     /* bodies handed over, not yet started, by kind */

    struct settle_item *results;
    size_t result_count, result_cap;

    bool schema_known;   /* checked on the first connection */
    int64_t away_us;     /* since when there is no database that takes writes; 0: it is there */
    int64_t db_retry_us; /* no statement before; 0: none is put off */
    int64_t backoff_us;
    struct err away;      /* why the last try failed */
    unsigned away_said;   /* a bit for each err_code that was logged of it */
    int64_t away_said_us; /* the first of these */
    struct duty_trouble troubles[DUTY_COUNT];
    bool recover;          /* a claim failed, its outcome is not known: look what it took */
    int64_t claim_sent_us; /* of that claim */

    struct look look; /* what to ask about waiting tasks next, and when */
    struct claim_peek peek;
    int64_t reap_cost_us; /* of the last look for ended leases */
    int64_t check_us, renew_us, beat_us, reap_us, retention_us, watchdog_us, watchdog_every_us;
    int64_t renew_again_us;  /* leases that could not be renewed are tried again then; 0: none */
    struct aside reap_aside; /* tasks that could not be taken back */
    char *reap_after;        /* the next look for ended leases begins behind this tag; NULL: with the first */
    bool renew_faulty;       /* there were some at the last renewal */
    struct wake wake;
    unsigned share, shares;
    bool unheard; /* our row of dq_poller is locked by somebody */
    uint64_t ping_sent, ping_answered;
    int64_t ping_sent_us;
    int64_t ticked_us;

    uint64_t total_done, total_failed, total_retried;
};

/* tags.c */
struct tag_state *tags_get(struct poller *p, const char *name); /* made when new; never NULL */
void tags_rematch(struct poller *p);                            /* the handlers table has changed */
struct tag_state *tags_of(struct look_tag *t);
void tags_take_all(struct poller *p, int64_t now_us);  /* p->peek has the next task of each tag */
void tags_take_news(struct poller *p, int64_t now_us); /* p->peek has only some of the tasks */
void tags_rest(struct tag_state *t, const char *why);  /* its handler could not be started */
void tags_free(struct poller *p);

/* flight.c */
void flight_take(struct poller *p, struct tag_state *t, struct task_array *won,
                 int64_t sent_us); /* tasks become jobs; empties won */
void flight_release(struct poller *p, struct task_array *won,
                    const char *why); /* gives claimed tasks back unstarted; empties won */
int64_t flight_next(const struct poller *p);
int flight_load(struct poller *p,
                struct err *err);          /* duty: hands held jobs over; bodies of the first long one, a statement a time */
bool flight_holds(const struct poller *p); /* whether there are held jobs */
void flight_return_held(struct poller *p, const char *why);
struct job *flight_job_new(struct poller *p, struct tag_state *t, uint32_t count); /* of the current table; tasks are still empty */
void flight_hold(struct poller *p, struct job *j, size_t at); /* at that place among the held jobs of its kind */
void flight_release_task(struct poller *p, struct job *j, struct flight_task *f, const char *why);
const struct handler *flight_handler(const struct job *j);
void flight_end_task(struct job *j, struct flight_task *f);
void flight_release_job(struct poller *p, struct job *j, const char *why); /* gives its open tasks back, frees it */
void flight_job_free(struct poller *p, struct job *j);
void flight_free(struct poller *p);

/* body.c */
bool body_loaded(const struct job *j); /* all of its bodies */
/* One statement for the first of the held long jobs: asks how long its bodies are, or loads some. Tasks whose body is gone or
 * cannot be read leave the job, which may be empty afterwards; what is too much for one process becomes jobs of their own behind
 * it. */
int body_step(struct poller *p, struct job *j, struct err *err);

/* report.c */
void report_take_all(struct poller *p);    /* whatever the runner has said since */
void report_runner_gone(struct poller *p); /* it died */

/* claim.c: duties */
int64_t claim_next(const struct poller *p);
int claim_run(struct poller *p, struct err *err);
int64_t claim_recover_next(const struct poller *p);
int claim_recover(struct poller *p, struct err *err);

/* care.c */
void care_put_aside(struct tag_state *t, const struct row_faults *f, int64_t now_us); /* rows that a claim could not change */
/* Somebody has locked the tag's row of dq_tag: another dqd that is claiming, or an open transaction. Only this tag waits. */
void care_limit_locked(struct tag_state *t, const struct err *err);
void care_limit_free(struct tag_state *t);
void care_say_left(const struct poller *p); /* at the end: the tags with tasks that could not be claimed, if that was not logged */
/* Some body_size was a lie: claims of the tag bring no bodies for a while. */
void care_long_bodies(struct tag_state *t, int64_t now_us);

/* lease.c: duties */
int64_t lease_check_next(const struct poller *p);
int lease_check(struct poller *p, struct err *err);
int64_t lease_renew_next(const struct poller *p);
int lease_renew(struct poller *p, struct err *err);
int64_t lease_vouch_us(const struct poller *p); /* how long after a claim or a check a task may be started */

/* settle.c */
/* Copies error and output. leased_us: when the claim or the last renewal was sent. */
void settle_queue(struct poller *p, const struct settlement *s, int64_t leased_us);
int64_t settle_next(const struct poller *p);
int settle_flush(struct poller *p, struct err *err);
bool settle_stuck(const struct poller *p, int64_t since_us); /* nothing waits but what could not be recorded since then */
void settle_free(struct poller *p);

/* registry.c, upkeep.c: duties */
int64_t registry_next(const struct poller *p);
int registry_beat(struct poller *p, struct err *err);
void registry_leave(struct poller *p);
int64_t upkeep_reap_next(const struct poller *p);
int upkeep_reap(struct poller *p, struct err *err);
int64_t upkeep_retention_next(const struct poller *p);
int upkeep_retention(struct poller *p, struct err *err);

/* input.c: what a handler reads. A sealed memfd at offset 0, or -1 with err (ERR_SYSTEM, or ERR_DATA if this body is to blame). */
int input_body(const void *body, size_t size, struct err *err);
int input_batch(const struct task *tasks, size_t count, struct err *err);

/* wake.c */
void wake_open(struct poller *p); /* as [dqd] wake_dir says; when it cannot be done it is logged, and all else goes on */
void wake_close(struct poller *p);
int wake_fd(const struct poller *p);       /* wake.rung is to be set when it is readable; -1: not at the moment */
int64_t wake_next(const struct poller *p); /* when wake_run has something to do */
void wake_run(struct poller *p);           /* if it was rung, and the last time was long enough ago: empties the queue, looks */

/* duty.c */
void duty_run(struct poller *p);           /* those whose time has come, if the database is there */
int64_t duty_next(const struct poller *p); /* when the next one wants to run */

/* poller.c */
void poller_end(struct poller *p, int code, const char *text); /* at once; code 0: as asked, else why */
const char *poller_mode_name(enum poller_mode m);
uint64_t poller_random(void);

#endif
