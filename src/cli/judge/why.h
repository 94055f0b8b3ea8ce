/*
 * why.h - why a task does not run: decided from a few facts. Pure, but for heap memory.
 */
#ifndef DQ_CLI_JUDGE_WHY_H
#define DQ_CLI_JUDGE_WHY_H

#include "base/buf.h"
#include "base/limit.h"
#include "cli/judge/why_lines.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A live dqd, as far as the task's tag is concerned. */
struct why_dqd {
    const char *host;
    uint32_t pid;
    int64_t silent_ms; /* since its last heartbeat, or the end of the pass */
    int64_t slots, running;
    enum { WHY_SERVES_NOT, WHY_SERVES, WHY_SERVES_UNKNOWN } serves;
    /* if it serves the tag: */
    const char *file; /* of the handler; NULL: not known */
    uint32_t line, batch, max_running;
    uint64_t tasks;         /* of the tag, that it runs or has claimed, or those count for it */
    uint64_t elsewhere;     /* of these: of dqds that are ending beside it */
    int64_t timeout_ms;     /* of its handler */
    bool quiet;             /* dq quiet: it claims nothing */
    bool between;           /* a pass that has ended: silent_ms since then */
    int64_t next_ms;        /* until the next pass is expected, at the latest */
    const char *rest_error; /* why the tag rests there; NULL: it does not */
    const char *hindrance;  /* the server refuses to find or change its tasks; NULL: it does not */
    bool slow;              /* or rather, that takes long */
    int64_t rest_ms;        /* what is left of the rest; 0 or less: until its next pass */
};

struct why_facts {
    uint64_t id;
    const char *tag;
    int status;        /* enum task_status */
    int64_t due_in_ms; /* 0 or less: it is due */
    int64_t late_ms;   /* as task_late_from has it; 0: it is not late */
    uint64_t version;
    uint32_t attempt;
    const char *error; /* of the last attempt; NULL: none */
    const char *host;  /* of the last owner; NULL: none */
    uint32_t pid;
    int64_t lease_ms;   /* until the lease of a running task ends; 0 or less: it has ended */
    bool lease_ahead;   /* it was made while the server's clock was ahead */
    bool owner_alive;   /* of a running task */
    bool again;         /* a running task was added again meanwhile */
    int64_t ran_ms;     /* how long a running task has run; -1: not known */
    int64_t timeout_ms; /* of its handler; 0: not known */
    struct limit limit; /* of its tag; why_facts_see sets what runs */
    const char *paused_by;
    const char *paused_as; /* the tag or glob that is; NULL: the tag */
    int64_t now_at;
    int64_t expires_at; /* 0: it does not */
    /* tasks before it; if more than before_most, there may be any number more */
    uint64_t before, before_most;
    uint64_t tasks;      /* of the tag, that run or are claimed, on all hosts */
    uint64_t under;      /* the same of all tags under its limit */
    int64_t mean_ms;     /* of a task; -1: not known */
    int64_t usual_ms;    /* the median of the same tasks; -1: not known */
    uint64_t longest_id; /* of the tag, that runs for the longest time; 0: not known */
    int64_t longest_ms;
    bool locked;        /* its row is locked by another session */
    bool limit_locked;  /* the row of its tag, which guards the limit over all hosts, is */
    const char *holder; /* of the lock: "connection 22, root@web1, open for 27m"; NULL: not known */
    const char *holder_end; /* what ends that: "KILL 22" */
    const char *last_dqd;   /* that is not alive any more: "vm, 40s ago" */
    const char *nearest;    /* the tag that may have been meant; NULL: none */
    const struct why_dqd *dqds;
    size_t dqd_count;
};

/* There is at least one cause. Free *ret with why_lines_done. */
void why_decide(const struct why_facts *f, struct why *ret);
/* Nothing that is known holds it back. */
bool why_is_open(const struct why *w);
/* The same in a few words, for a list of tags: why the first task of a tag waits, or when it is
 * due; "" if nothing holds it back. Heap memory. */
char *why_brief(const struct why *w);

#endif
