/*
 * message.h - the messages between poller and runner: orders go to the runner, reports come back.
 *
 * Each message is one struct here and, in message.c, code that both puts and gets it: a new field
 * is one line in each. Times named _us are microseconds on the steady clock of this host,
 * deadline_at is milliseconds on it, and expected_at milliseconds on the database's.
 */
#ifndef DQ_RUNNER_MESSAGE_H
#define DQ_RUNNER_MESSAGE_H

#include "base/task.h"
#include "runner/proto.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define MESSAGE_TASKS_MAX 8192         /* of one job */
#define MESSAGE_INPUT_MAX 4096         /* in a JOB; longer ones are in a descriptor */
#define MESSAGE_NUMBERS_MAX 16384      /* in one DEADLINE */
#define MESSAGE_PIECE_MAX (32 * 1024)  /* of output in one OUTPUT or CHUNK */
#define MESSAGE_FRESH_MAX (256 * 1024) /* of output kept between two FOLLOW */

enum message_type {
    MESSAGE_JOB = 1,
    MESSAGE_DEADLINE,
    MESSAGE_VOUCH,
    MESSAGE_KILL,
    MESSAGE_FOLLOW,
    MESSAGE_RETURN, /* give back every job that has not started; has no fields */
    MESSAGE_RELOAD,
    MESSAGE_ELSEWHERE,
    MESSAGE_PING,
    MESSAGE_STARTED = 101,
    MESSAGE_CHUNK,
    /* a piece of a job's output; those of one job come together, before its last results */
    MESSAGE_OUTPUT,
    MESSAGE_RESULT,
    MESSAGE_ENDED,
    MESSAGE_RETURNED,
    MESSAGE_RELOADED,
    MESSAGE_PONG,
    MESSAGE_KEPT,
    MESSAGE_GONE, /* is never sent: link_next returns it when the runner has died */
};

/* ---- orders */

/* What a process works on: one task, or a batch of them. */
struct message_job {
    uint64_t digest; /* of the handlers table that `handler` indexes */
    uint32_t handler;
    const char *tag;  /* max_running is counted by tag */
    int64_t start_us; /* not before; 0: at once */
    /* not after, unless VOUCH extends it: the task may have been cancelled */
    int64_t vouched_us;
    int64_t late_us;     /* a rate has reserved its start, and later it is none; 0: it has not */
    int64_t expires_us;  /* not started from then on: a task expires, or its hours end; 0: none */
    int64_t deadline_at; /* killed before this unless renewed */
    const void *input;   /* the body, or JSON lines */
    size_t input_size;
    /* instead, if they are long: a sealed memfd at offset 0. -1: there is none;
     * PROTO_FD_LOST: it did not arrive. Sending closes it; the receiver owns it */
    int stdin_fd;
    const void *ids; /* of the tasks, uint64_t each, in the order of the lines; unaligned */
    uint32_t count;  /* 1 to MESSAGE_TASKS_MAX, at most the handler's batch */
    /* of the single task; unused if stdin is lines, which have it */
    const char *key; /* NULL: DQ_KEY is empty */
    uint32_t run, attempt, max_attempts;
    int64_t expected_at;
    uint32_t slots; /* that it stands for, its own included; 0: no schedule added it */
    uint64_t token; /* DQ_TOKEN: grows with every attempt of a task */
};

/* The leases of these jobs were renewed. */
struct message_deadline {
    int64_t deadline_at;
    const void *numbers; /* of the jobs, uint32_t each; unaligned */
    uint32_t count;      /* 1 to MESSAGE_NUMBERS_MAX */
};

/* Every job that waits may start until then. */
struct message_vouch {
    int64_t until_us;
};

enum message_kill_reason {
    MESSAGE_KILL_CANCELLED,
    MESSAGE_KILL_LOST,
    MESSAGE_KILL_SHUTDOWN,
    MESSAGE_KILL_UNSTARTED, /* only if it has not begun */
    MESSAGE_KILL_COUNT
};
struct message_kill {
    enum message_kill_reason reason;
};

/* A job that is followed keeps new output, besides its tail, and sends it in CHUNK messages when it
 * is asked and when the process has ended. A job that does not exist does not answer. */
enum message_follow_what {
    MESSAGE_FOLLOW_BEGIN, /* also asks: for the tail so far */
    MESSAGE_FOLLOW_WHOLE, /* the same; and the process has to wait if it writes faster than asked */
    MESSAGE_FOLLOW_MORE,  /* asks for what is new since */
    MESSAGE_FOLLOW_END,
    MESSAGE_FOLLOW_COUNT
};
struct message_follow {
    enum message_follow_what what;
};

struct message_reload {
    uint64_t digest; /* of the poller's table: it stays known */
};

/* What ending dqds of this host still run counts as if it ran here. */
struct message_elsewhere {
    const char *tag;
    uint32_t running; /* of the tag; replaces what was said of it before */
    uint32_t all;     /* of all tags; at most the sum of these */
};

struct message_ping {
    uint64_t n;
};

/* ---- reports */

struct message_started {
    pid_t pid; /* also its session */
    int64_t at_us;
};

/* A part of the answer to a FOLLOW; those of one answer come together. For a batch it is stderr. */
struct message_chunk {
    uint64_t start; /* how much the job had written before; later than expected: some was lost */
    const void *data;
    size_t size; /* at most MESSAGE_PIECE_MAX; 0: nothing new */
    bool more;   /* the next CHUNK belongs to this answer, too */
};

struct message_output {
    const void *data;
    size_t size; /* at most MESSAGE_PIECE_MAX */
};

/* One task has ended: before the process has if a batch handler has printed a verdict on it. */
struct message_result {
    uint64_t id;
    enum task_outcome outcome; /* DONE, EXIT, SIGNAL, TIMEOUT, CANCELLED, KILLED, VERDICT */
    bool permanent;            /* not to be retried, whatever the retry policy */
    bool with_output;       /* the OUTPUT messages before it are its own; not set for a verdict */
    int64_t retry_after_ms; /* a verdict's `after`; -1: by the retry policy */
    int64_t hold_ms;        /* a verdict's `hold`; 0: none */
    int exit_code, signal;  /* -1: it has none; 0: none */
    int64_t finish_us;
    const char *error; /* NULL: none */
    /* the tail of what the process wrote: not sent here, link_next joins it from OUTPUT messages */
    const void *output;
    size_t output_size;
};

/* Nothing of a process works on the job any more, every task of it was reported by RESULT. */
struct message_ended {
    int64_t at_us;
};

/* The job is given back as a whole: no task of it has run. Comes after STARTED if the process ended
 * with 126 or 127. */
struct message_returned {
    /* ERR_SYSTEM (126, 127, ...): the tag should rest on this host; ERR_TRANSIENT: try again soon;
     * 0: it was not begun */
    int cannot_start;
    const char *error; /* NULL: no fault */
};

struct message_reloaded {
    uint64_t digest; /* of the table that is now in use */
    /* a sealed memfd at an unknown offset: the text that the table was made of. -1: see error;
     * PROTO_FD_LOST: it did not arrive. Sending closes it; the receiver owns it */
    int text_fd;
    const char *error; /* the file was refused, the old table stays; NULL: none */
};

struct message_pong {
    uint64_t n; /* that of the PING */
};

/* Why a process that stays was replaced: a limit of `recycle`, restart_on, or it ended by itself,
 * was killed or at fault. */
enum message_kept_why {
    MESSAGE_KEPT_TASKS,
    MESSAGE_KEPT_AGE,
    MESSAGE_KEPT_MEMORY,
    MESSAGE_KEPT_RESTART_ON,
    MESSAGE_KEPT_ENDED,
    MESSAGE_KEPT_WHYS
};
extern const char *const message_kept_whys[MESSAGE_KEPT_WHYS];

/* What becomes of the processes of a handler that stay. */
struct message_kept {
    uint32_t handler; /* of the table that is in use */
    uint32_t busy, idle;
    uint64_t memory; /* bytes */
    uint32_t replaced[MESSAGE_KEPT_WHYS];
    const char *last; /* why one was replaced last; NULL: none was */
};

struct message {
    enum message_type type;
    uint32_t number; /* of the job that it is about, chosen by the poller; else 0 */
    union {
        struct message_job job;
        struct message_deadline deadline;
        struct message_vouch vouch;
        struct message_kill kill;
        struct message_follow follow;
        struct message_reload reload;
        struct message_elsewhere elsewhere;
        struct message_ping ping;
        struct message_started started;
        struct message_chunk chunk;
        struct message_output output;
        struct message_result result;
        struct message_ended ended;
        struct message_returned returned;
        struct message_reloaded reloaded;
        struct message_pong pong;
        struct message_kept kept;
    };
};

/* Adds a message to the packets to send. Does not block. */
void message_put(struct proto_out *o, const struct message *m);

/* The next message of the packet: 1; 0 at the packet's end; -1 if it is malformed, goes the other
 * way, or has a value out of its range: in->bad is set. Pointers are into the packet: valid until
 * the next proto_recv. */
int message_get_order(struct proto_in *in, struct message *ret) __attribute__((warn_unused_result));
int message_get_report(struct proto_in *in, struct message *ret)
    __attribute__((warn_unused_result));

#endif
