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

static void return_unable(struct job *j, struct process_context *c, int status)
{
    struct err e = {0};

    reply_explain(j, &e, "exit status %d (%s)", status,
                  status == 127 ? "not found" : "not executable");
    reply_returned(c->out, j, ERR_SYSTEM, e.text);
}

void finish_process(struct process *p, struct process_context *c)
{
    struct job *j = p->job;
    struct err why = {0};

    *p->launch.note = NOTES_CLEARED;
    if (p->launch.given_up && start_was_none(p, &why)) {
        child_reap(p->pid);
        reply_returned(c->out, j, why.code, why.code ? why.text : NULL);
        return;
    }
    if (p->launch.given_up)
        reply_started(c->out, p);
    if (j->whole)
        reply_fresh(c->out, j); /* makes room */
    for (int i = PROCESS_STREAMS - 1; i >= 0; i--) {
        stream_read(&p->streams[i], c, LAST_READ_MAX);
        stream_finish(&p->streams[i], c);
    }
    if (j->followed)
        reply_fresh(c->out, j);
    int status = child_reap(p->pid), code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if ((code == 126 || code == 127) && p->stop == PROCESS_RUNS && j->open == j->order.count &&
        !j->replied)
        return_unable(j, c, code);
    else
        reply_ended(c->out, p, status);
}
