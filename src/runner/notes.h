/*
 * notes.h - which process leads the session of each job: memory that poller and runner share, and
 * that outlives the runner.
 *
 * A job's note is the entry with its number. The poller clears it when it sends the job; the runner
 * sets it to NOTES_STARTS before it forks, the new process to its own pid before it executes
 * anything, and the runner to NOTES_CLEARED before that pid can belong to another process. Jobs
 * with a number of NOTES_MAX or more have no note and count as begun.
 */
#ifndef DQ_RUNNER_NOTES_H
#define DQ_RUNNER_NOTES_H

#include <sys/types.h>

#define NOTES_MAX 65536
#define NOTES_KEPT 4096 /* behind those of jobs: of processes that stay, whatever they work on */
enum { NOTES_STARTS = -1, NOTES_CLEARED = -2 };

/* NOTES_MAX + NOTES_KEPT entries of 0, shared with processes that are forked later. NULL: errno
 * says why. */
volatile pid_t *notes_new(void);
void notes_free(volatile pid_t *notes); /* in this process; NULL is fine */

#endif
