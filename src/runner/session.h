/*
 * session.h - signals everything that is left of handlers' sessions, whatever process groups they
 * made, and weighs them.
 *
 * A session is identified by the pid of its leader. The caller makes sure that the leader has not
 * been reaped, so that the pid cannot belong to another process. Each call goes through all
 * processes of the host, which takes milliseconds.
 */
#ifndef DQ_RUNNER_SESSION_H
#define DQ_RUNNER_SESSION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Returns whether the processes of this session are weighed, or get the signal. */
typedef bool session_meant(void *ctx, pid_t session);

/* Calls weigh with the resident memory of each process of these sessions. */
typedef void session_weight(void *ctx, pid_t session, int64_t bytes);
void session_weigh(session_meant *meant, session_weight *weigh, void *ctx);
/* Resident memory of all its processes; 0: unknown. */
int64_t session_memory(pid_t session);

/* Sends TERM and CONT to processes that are not in their leader's group, which is signalled as a
 * group (child_signal). */
void session_term(session_meant *meant, void *ctx);

enum session_left {
    SESSION_EMPTY,  /* each process is dead, or will be before it can execute anything */
    SESSION_DENIED, /* this account may not kill some of them */
    /* empty as far as can be seen: /proc does not show all processes to this account (hidepid) */
    SESSION_HIDDEN,
    /* new ones appear faster than they are killed, or /proc cannot be opened: try again */
    SESSION_GROWS,
};
/* Sends KILL to all except the leaders, which get it with their groups, until a look finds none
 * that has not got it. *ret_denied: one that could not be killed; ret_denied may be NULL. */
enum session_left session_kill(session_meant *meant, void *ctx, pid_t *ret_denied)
    __attribute__((warn_unused_result));

#endif
