/*
 * job.c - creates and frees jobs, and computes when their leases require TERM and KILL.
 *
 * Invariant: KILL is due before the deadline, however short the lease.
 */
#include "runner/job.h"

#include "base/mem.h"

#include <stdlib.h>
#include <sys/param.h>
#include <unistd.h>

struct job *job_new(uint32_t number, const struct message_job *m, int64_t now)
{
    struct job *j = mem_zero(1, sizeof *j);

    j->number = number;
    j->order = *m;
    j->order.tag = mem_strdup(m->tag);
    j->order.key = mem_strdup(m->key);
    j->order.input = m->input_size ? mem_dup(m->input, m->input_size) : NULL;
    j->order.ids = j->ids = mem_dup(m->ids, m->count * sizeof *j->ids);
    job_set_deadline(j, m->deadline_at, now);
    j->open = m->count;
    j->reported = mem_zero(m->count, sizeof *j->reported);
    return j;
}

void job_free(struct job *j)
{
    if (!j)
        return;
    if (j->order.stdin_fd >= 0)
        close(j->order.stdin_fd);
    capture_done(&j->tail);
    capture_done(&j->fresh);
    for (uint32_t i = 0; j->unread && i < j->order.count; i++)
        free(j->unread[i]);
    free(j->unread);
    free(j->unread_any);
    free((char *)j->answer.error);
    free((char *)j->order.tag);
    free((char *)j->order.key);
    free((void *)j->order.input);
    free((uint64_t *)j->ids);
    free(j->reported);
    free(j->by_id);
    free(j);
}

void job_follow(struct job *j, bool begin)
{
    size_t len;
    const char *tail = capture_tail(&j->tail, &len);

    capture_done(&j->fresh);
    j->followed = begin;
    if (!begin)
        return;
    capture_init(&j->fresh, MESSAGE_FRESH_MAX);
    j->fresh.total = j->tail.total - len;
    capture_add(&j->fresh, tail, len);
}

void job_set_deadline(struct job *j, int64_t deadline_at, int64_t now)
{
    if (deadline_at <= j->deadline_at)
        return;
    j->deadline_at = deadline_at;
    j->lease_ms = deadline_at > now ? deadline_at - now : 0;
}

/* KILL is sent a margin before the deadline, TERM a grace before that; both are small against a
 * short lease. */
int64_t job_lease_kill_at(const struct job *j)
{
    int64_t margin = j->lease_ms / 20;

    return j->deadline_at - MIN(margin, 200);
}

int64_t job_lease_term_at(const struct job *j)
{
    int64_t grace = j->plan->handler->kill_grace_ms;

    return job_lease_kill_at(j) - MIN(grace, j->lease_ms / 4);
}
