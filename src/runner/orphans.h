/*
 * orphans.h - processes that handlers left behind, which the runner adopts.
 *
 * The kernel gives orphans to the first thread of the process, and handlers are children of other
 * threads (launch.h). So the list of the first thread's children has orphans only, is mostly empty,
 * and costs next to nothing to read. A kernel without CONFIG_PROC_CHILDREN has no such list: then
 * there may always be some.
 */
#ifndef DQ_RUNNER_ORPHANS_H
#define DQ_RUNNER_ORPHANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct orphan {
    pid_t pid;
    int64_t seen_at; /* for the first time; steady clock, ms */
    bool here;       /* at the last look */
};

struct orphans {
    struct orphan *items;
    size_t count, cap;
    int list_fd; /* the kernel's list of them; -1: it has none */
};

/* Must be called by the first thread. Makes this process adopt what its descendants leave behind.
 */
void orphans_init(struct orphans *o);
/* Reads the list again: adds new ones, and drops those that were reaped. */
void orphans_look(struct orphans *o, int64_t now);
/* Whether one of them may descend from a process that was started at start_at: those seen before
 * that do not. */
bool orphans_since(const struct orphans *o, int64_t start_at);

#endif
