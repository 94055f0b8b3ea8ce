/*
 * contract.h - how a handler is told its tasks and says what became of them. Each way is a row; the
 * files of the runner ask for what a row says, and none asks which way it is.
 */
#ifndef DQ_RUNNER_CONTRACT_H
#define DQ_RUNNER_CONTRACT_H

#include "conf/handlers.h"

#include <stdbool.h>

struct contract {
    bool lines;     /* stdin is a line of JSON for each task; else the body of one */
    bool verdicts;  /* an answer names its task and counts at once; else the last one, at the end */
    bool on_stdout; /* answers come on stdout if there are none on DQ_REPLY_FD */
    bool stays;     /* a process has one job after another, see keep.h */
};

const struct contract *contract_of(const struct handler *h);

#endif
