/*
 * child.h - starting a process that leads its own session, signalling its group, reaping it.
 */
#ifndef DQ_RUNNER_CHILD_H
#define DQ_RUNNER_CHILD_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/types.h>

/* An account as it is switched to; found before, for nothing may be looked up between fork and
 * exec. */
struct child_account {
    char *name;
    uid_t uid;
    gid_t gid;
    gid_t *groups;
    size_t group_count;
};

struct child_spec {
    /* tried in this order, as execvp does; NULL-terminated, at least one */
    const char *const *programs;
    char *const *argv;
    char *const *envp;
    int in, out, err; /* become 0, 1, 2; each > 2 and close-on-exec */
    const char *cwd;
    const struct child_account *account; /* NULL: stay */
    mode_t umask;
    int nice; /* absolute */
    bool set_nice;
    const struct rlimit *files; /* RLIMIT_NOFILE; NULL: as it is */
    /* gets its number before anything else is done that could take long */
    volatile pid_t *note;
};

/* Starts it: own session and group, no blocked signal, KILL when the calling thread dies, every
 * descriptor above 2 that is close-on-exec closed. The calling thread waits until the program is
 * executed, which is for ever if a file system does not answer; the others run on. All signals
 * whose handlers or SIG_IGN must not pass to the child are to be default here. ERR_SYSTEM says
 * which step failed on what. */
int child_start(const struct child_spec *s, pid_t *ret, struct err *err)
    __attribute__((warn_unused_result));

/* Sends a signal to the group of a leader that was not reaped yet. TERM also continues it: a
 * stopped process cannot end. */
void child_signal(pid_t leader, int sig);

/* The next child that has ended but was not reaped: its pid, 0: none. */
pid_t child_ended(void);
/* Whether this one has ended; it stays unreaped. */
bool child_has_ended(pid_t pid);
/* Takes away a leader that has ended: its status, as waitpid(2) gives it. Before this, kill
 * what remains of its session: only while the leader is a zombie is its number certain to be
 * no other's. */
int child_reap(pid_t pid);
/* Of a child that has ended: whether that was before it executed its program. */
bool child_never_executed(pid_t pid);

#endif
