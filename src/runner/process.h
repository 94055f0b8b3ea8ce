/*
 * process.h - the life of the runner process, between the fork in link.c and its end.
 */
#ifndef DQ_RUNNER_PROCESS_H
#define DQ_RUNNER_PROCESS_H

#include <sys/types.h>

/* Who leads the handlers' sessions, by the job's number: shared memory, which outlives the
 * runner. The poller clears an entry when it sends the job; the runner sets it to
 * PROCESS_STARTS before it forks, the new process to its own number before it executes
 * anything, and the runner to PROCESS_CLEARED before that number is free for others. Jobs with
 * a higher number count as begun. */
#define PROCESS_NOTES_MAX 65536
enum { PROCESS_STARTS = -1, PROCESS_CLEARED = -2 };

/* The first thing in the new process: its name, its signals (all blocked but faults, none ignored),
 * no descriptor but 0 to 2 and the link. Returns the link's new number. */
int process_take_over(int sock);

#endif
