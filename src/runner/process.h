/*
 * process.h - makes a forked copy of the poller the runner process.
 */
#ifndef DQ_RUNNER_PROCESS_H
#define DQ_RUNNER_PROCESS_H

/* The first call in the new process: sets its name and its signals (all blocked except those that
 * report a fault in the program, none ignored), and closes every descriptor except 0 to 2 and sock.
 * Returns sock's new number. */
int process_take_over(int sock);

#endif
