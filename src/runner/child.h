/*
 * child.h - starts processes that lead sessions of their own, signals their groups, reaps them.
 */
#ifndef DQ_RUNNER_CHILD_H
#define DQ_RUNNER_CHILD_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/types.h>

/* An account to switch to. It is looked up beforehand, because nothing may be looked up between
 * fork and exec. */
struct child_account {
    char *name;
    uid_t uid;
    gid_t gid;
    gid_t *groups;
    size_t group_count;
};

#define CHILD_REPLY 3 /* one digit, because the word after >& of dash has no more */

struct child_spec {
    /* tried in this order, as execvp does; NULL-terminated, at least one */
    const char *const *programs;
    char *const *argv;
    char *const *shell; /* executed instead if none of them can be; NULL: nothing is */
    char *const *envp;
    int in, out, err, reply; /* become 0, 1, 2, CHILD_REPLY; each > 3 and close-on-exec */
    const char *cwd;
    const struct child_account *account; /* NULL: do not switch */
    mode_t umask;
    int nice; /* absolute */
    bool set_nice;
    const struct rlimit *files; /* RLIMIT_NOFILE; NULL: unchanged */
    /* set to the new pid before anything that may take long */
    volatile pid_t *note;
};

/* Starts a process: with a session and group of its own, no signal blocked, descriptors above 2
 * closed if they are close-on-exec, and KILL when the calling thread dies. Blocks the calling
 * thread, but no other, until the program is executed: for ever if a file system does not answer.
 * Signals must have their default action here, or the child inherits what they have. ERR_SYSTEM:
 * err says which step failed. */
int child_start(const struct child_spec *s, pid_t *ret, struct err *err)
    __attribute__((warn_unused_result));

/* Sends a signal to the group of a leader that has not been reaped. TERM is followed by CONT,
 * because a stopped process does not act on TERM. */
void child_signal(pid_t leader, int sig);

/* The pid of a child that has ended and was not reaped; 0: there is none. */
pid_t child_ended(void);
/* Whether this child has ended. Does not reap it. */
bool child_has_ended(pid_t pid);
/* Reaps a child that has ended, and returns its status as waitpid(2) does. Kill the rest of its
 * session first: its pid cannot belong to another process only until it is reaped. */
int child_reap(pid_t pid);
/* What the kernel says of a process behind its name (proc_pid_stat(5)): " S 1 ...". Copied into
 * text, of this size. NULL: there is no such process, or it cannot be read (errno). */
#define CHILD_STAT_SIZE 512
const char *child_stat(pid_t pid, char text[CHILD_STAT_SIZE]);
/* Whether a child that has ended never executed its program. */
bool child_never_executed(pid_t pid);

#endif
