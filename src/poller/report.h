/*
 * report.h - what the runner says, turned into results.
 */
#ifndef DQ_POLLER_REPORT_H
#define DQ_POLLER_REPORT_H

struct poller;

void report_take_all(struct poller *p);    /* whatever the runner has said since */
void report_runner_gone(struct poller *p); /* it died */

#endif
