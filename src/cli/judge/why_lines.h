/*
 * why_lines.h - what an answer of dq why consists of: causes, what is none, and what helps.
 */
#ifndef DQ_CLI_JUDGE_WHY_LINES_H
#define DQ_CLI_JUDGE_WHY_LINES_H

#include <stdbool.h>
#include <stddef.h>

/* clang-format off */
#define WHY_CAUSES(X)                \
    X(DONE, "done")                  \
    X(FAILED, "failed")              \
    X(CANCELLED, "cancelled")        \
    X(EXPIRED, "expired")            \
    X(RUNS, "runs")                  \
    X(UNRECORDED, "unrecorded")      \
    X(LEASE, "lease")                \
    X(NOT_DUE, "not_due")            \
    X(RETRY, "retry")                \
    X(SNOOZED, "snoozed")            \
    X(PAUSED, "paused")              \
    X(LIMIT, "limit")                \
    X(NO_DQD, "no_dqd")              \
    X(QUIET, "quiet")                \
    X(NEXT_PASS, "next_pass")        \
    X(UNSERVED, "unserved")          \
    X(RESTS, "rests")                \
    X(MAX_RUNNING, "max_running")    \
    X(SLOTS, "slots")                \
    X(GLOBAL, "global_max_running")  \
    X(BEHIND, "behind")              \
    X(LOCKED, "locked")              \
    X(REFUSED, "refused")            \
    X(SLOW, "slow")                  \
    X(UNKNOWN, "unknown")            \
    X(NONE, "none")
/* clang-format on */
#define WHY_CAUSE_NUMBER(cause, name) WHY_##cause,
enum why_cause { WHY_CAUSES(WHY_CAUSE_NUMBER) };
/* Every name that a cause may have, NULL-terminated. */
extern const char *const why_lines_names[];

struct why_line {
    const char *name;    /* of a cause, for programs; NULL otherwise */
    char *text, *detail; /* detail NULL: none */
    char *brief;         /* of a cause, for why_brief; NULL: nothing */
};

struct why_lines {
    struct why_line *items;
    size_t count;
};

/* Every cause that holds, those that do not, and what helps. There is at least one cause. */
struct why {
    struct why_lines causes, ruled_out, remedies;
};

/* Texts are heap memory, which becomes that of the line. */
struct why_line *why_lines_add(struct why_lines *l, const char *name, char *text);
/* brief NULL: nothing to say in a list of tags. */
struct why_line *why_lines_cause(struct why *w, enum why_cause which, char *text, char *brief);
void why_lines_help(struct why *w, char *text);
void why_lines_rule_out(struct why *w, char *text);
/* A cause of that kind; NULL: there is none. */
const struct why_line *why_lines_find(const struct why *w, enum why_cause which);
void why_lines_done(struct why *w);

#endif
