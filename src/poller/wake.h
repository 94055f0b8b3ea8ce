/*
 * wake.h - being told that something has just become due.
 */
#ifndef DQ_POLLER_WAKE_H
#define DQ_POLLER_WAKE_H

#include <stdbool.h>
#include <stdint.h>

struct poller;

/* The file that others of this host open when something has just become due. */
struct wake {
    int fd; /* to poll(2) for reading: it was opened. -1: none, as for the others */
    int file_fd, dir_fd;
    char name[48];
    bool rung;       /* it was opened */
    int64_t next_us; /* it is not looked at before */
};

/* as [dqd] wake_dir says; when it cannot be done it is logged, and all else goes on */
void wake_open(struct poller *p);
void wake_close(struct poller *p);
/* wake.rung is to be set when it is readable; -1: not at the moment */
int wake_fd(const struct poller *p);
int64_t wake_next(const struct poller *p); /* when wake_run has something to do */
/* if it was rung, and the last time was long enough ago: empties the queue, looks */
void wake_run(struct poller *p);

#endif
