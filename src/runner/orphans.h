/*
 * orphans.h - processes that handlers left behind: the runner adopts them.
 *
 * Handlers are children of other threads than the first (launch.h), to which the kernel hands
 * orphans. So that one's children are orphans only, mostly none, and it costs next to nothing to
 * find out. A kernel without CONFIG_PROC_CHILDREN lists them not: there may always be some then.
 */
#ifndef DQ_RUNNER_ORPHANS_H
#define DQ_RUNNER_ORPHANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct orphan {
    pid_t pid;
    int64_t seen_at; /* first */
    bool here;       /* at the last look */
};

struct orphans {
    struct orphan *items;
    size_t count, cap;
    int list_fd; /* the kernel's list of them; -1: it keeps none */
};

/* To be called by the first thread. Makes this process the one that adopts what its descendants
 * leave behind. */
void orphans_init(struct orphans *o);
/* Takes note of new ones, and of those that were reaped. */
void orphans_look(struct orphans *o, int64_t now);
/* Whether one of them may descend from a process that was started at start_at: one that was there
 * before does not. */
bool orphans_since(const struct orphans *o, int64_t start_at);

#endif
