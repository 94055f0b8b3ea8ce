/*
 * report.h - what the runner reports, turned into results.
 */
#ifndef DQ_POLLER_REPORT_H
#define DQ_POLLER_REPORT_H

#include "conf/handlers.h"
#include "poller/context.h"
#include "poller/flight.h"
#include "runner/link.h"

/* A report about a job. */
void report_job(const struct context *ctx, struct flight *f, const struct message *m);
/* MESSAGE_RELOADED: the handlers that the runner has read, the caller's. NULL: they are refused,
 * which is logged. */
struct handlers *report_handlers(const struct context *ctx, const struct message_reloaded *e);
/* MESSAGE_GONE: no job is left. Tasks whose handler may have begun have used up an attempt, or are
 * left to their lease if that handler may still run. */
void report_runner_gone(const struct context *ctx, struct flight *f);

#endif
