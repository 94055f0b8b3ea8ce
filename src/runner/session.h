/*
 * session.h - signals to everything that is left of a handler's session, whatever process groups it
 * has made.
 *
 * A session is known by the number of the process that leads it. While that process has not been
 * reaped its number cannot become anybody else's; the caller sees to that. Each look goes through
 * all processes of the host: milliseconds.
 */
#ifndef DQ_RUNNER_SESSION_H
#define DQ_RUNNER_SESSION_H

#include <stdbool.h>
#include <sys/types.h>

/* Whether the processes of this session are meant. */
typedef bool session_meant(void *ctx, pid_t session);

/* TERM to those which are not in their leader's group: that one is signalled as a group
 * (child_signal). Also continues them. */
void session_term(session_meant *meant, void *ctx);

enum session_left {
    SESSION_EMPTY,  /* each process of them is dead, or will be before it can execute anything */
    SESSION_DENIED, /* but for some that this account has no right to kill */
    /* as far as can be seen: /proc does not show this account all processes (hidepid) */
    SESSION_HIDDEN,
    /* new ones appear faster than they can be killed, or /proc could not be opened: try again */
    SESSION_GROWS,
};
/* KILL to each but the leader, which its group's signal has reached, until a look finds none that
 * has not got it. ret_denied, which may be NULL: one that could not be killed. */
enum session_left session_kill(session_meant *meant, void *ctx, pid_t *ret_denied)
    __attribute__((warn_unused_result));

#endif
