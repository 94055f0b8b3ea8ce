/*
 * finish.c - reports how jobs ended.
 *
 * Invariants: every task of a started job gets exactly one result, or the job as a whole is
 * returned; a job ends when the leader of its session does, and nothing of the session outlives it.
 *
 * A background process that stays in the session is killed at that moment, and output that it has
 * not written by then is lost. One that has made a session of its own (setsid) goes on without
 * supervision: if it holds the handler's stdout, its writes fail.
 */
#include "runner/finish.h"

#include "runner/child.h"
#include "runner/notes.h"
#include "runner/reply.h"
#include "runner/start.h"
#include "runner/stream.h"

#include <sys/wait.h>

#define LAST_READ_MAX (256 * 1024) /* the leader has ended, but others may still write */

static void return_unable(struct job *j, struct job_context *c, int status)
{
    struct err e = {0};

    reply_explain(j, &e, "exit status %d (%s)", status,
                  status == 127 ? "not found" : "not executable");
    finish_return(j, c, true, e.text);
}

void finish_job(struct job *j, struct job_context *c)
{
    struct err why = {0};

    if (j->note)
        *j->note = NOTES_CLEARED;
    if (j->unsure && start_was_none(j, &why)) {
        child_reap(j->pid);
        finish_return(j, c, why.code != 0, why.code ? why.text : NULL);
        return;
    }
    if (j->unsure)
        reply_started(c->out, j, j->begun_us);
    if (j->whole)
        reply_fresh(c->out, j); /* makes room */
    for (int i = 0; i < 2; i++) {
        stream_read(&j->streams[i], c, LAST_READ_MAX);
        stream_close(&j->streams[i], c);
        stream_finish(&j->streams[i], c);
    }
    if (j->followed)
        reply_fresh(c->out, j);
    int status = child_reap(j->pid), code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if ((code == 126 || code == 127) && j->stop == JOB_RUNS && j->open == j->order.count)
        return_unable(j, c, code);
    else
        reply_ended(c->out, j, status);
}

void finish_return(struct job *j, struct job_context *c, bool cannot_start, const char *why)
{
    stream_close(&j->streams[0], c);
    stream_close(&j->streams[1], c);
    reply_returned(c->out, j, cannot_start, why);
}
