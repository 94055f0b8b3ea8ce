/*
 * task_columns.c - see task_columns.h. One function for each column.
 */
#include "cli/task_columns.h"

#define TASK ((const struct task *)row)
#define GETTER(name)                                                                               \
    static void get_##name(const void *row, const void *arg __attribute__((unused)),               \
                           struct cell *ret)

enum cell_colour task_status_colour(int status)
{
    static const enum cell_colour colours[TASK_STATUS_COUNT] = {[TASK_PENDING] = CELL_PLAIN,
                                                                [TASK_DONE] = CELL_GOOD,
                                                                [TASK_FAILED] = CELL_BAD,
                                                                [TASK_RUNNING] = CELL_BUSY,
                                                                [TASK_CANCELLED] = CELL_DIM};
    return status >= 0 && status < TASK_STATUS_COUNT ? colours[status] : CELL_PLAIN;
}

GETTER(id)
{
    cell_set_number(ret, TASK->id);
}

GETTER(tag)
{
    cell_set_text(ret, TASK->tag);
}

GETTER(key)
{
    cell_set_text(ret, TASK->key);
}

GETTER(status)
{
    cell_set_text(ret, task_status_name(TASK->status));
    ret->colour = task_status_colour(TASK->status);
}

GETTER(attempt)
{
    cell_set_number(ret, TASK->attempt);
}

GETTER(max_attempts)
{
    if (TASK->max_attempts != 0)
        cell_set_number(ret, TASK->max_attempts);
}

GETTER(due)
{
    cell_set_time(ret, TASK->status == TASK_PENDING ? TASK->expected_at : TASK_TIME_NONE);
    if (ret->kind != CELL_NULL)
        ret->kind = CELL_DUE;
}

GETTER(expected)
{
    cell_set_time(ret, TASK->expected_at);
}

GETTER(started)
{
    cell_set_time(ret, TASK->execution_at);
}

GETTER(finished)
{
    cell_set_time(ret, TASK->finish_at);
}

GETTER(late)
{
    if (TASK->status != TASK_PENDING && TASK->execution_at != TASK_TIME_NONE) {
        ret->kind = CELL_DURATION;
        ret->at = TASK->execution_at - TASK->expected_at;
    }
}

GETTER(delay)
{
    ret->kind = CELL_DURATION;
    ret->at = TASK->delay_ms;
}

GETTER(created)
{
    cell_set_time(ret, TASK->create_at);
}

GETTER(updated)
{
    cell_set_time(ret, TASK->update_at);
}

GETTER(host)
{
    cell_set_text(ret, TASK->host);
}

GETTER(pid)
{
    if (TASK->host)
        cell_set_number(ret, TASK->pid);
}

GETTER(lease_until)
{
    cell_set_time(ret, TASK->lease_until_at);
}

GETTER(exit)
{
    if (TASK->exit_code >= 0)
        cell_set_number(ret, (uint64_t)TASK->exit_code);
}

GETTER(signal)
{
    if (TASK->signal > 0)
        cell_set_number(ret, (uint64_t)TASK->signal);
}

GETTER(error)
{
    cell_set_text(ret, TASK->error);
}

GETTER(version)
{
    cell_set_number(ret, TASK->version);
}

GETTER(size)
{
    if (TASK->body_size != SIZE_MAX)
        cell_set_number(ret, TASK->body_size);
}

GETTER(body)
{
    cell_set_bytes(ret, TASK->body, TASK->body_size);
}

/* clang-format off */
const struct out_column task_columns[] = {
    {"id", NULL, true, 0, "number of the task", get_id},
    {"tag", NULL, false, OUT_NARROW, "tag, which selects the handler", get_tag},
    {"key", NULL, false, 40, "key, unique per tag among pending and running tasks", get_key},
    {"status", NULL, false, 0, "pending, running, done, failed or cancelled", get_status},
    {"attempt", NULL, true, 0, "attempts started so far", get_attempt},
    {"max_attempts", NULL, true, 0, "attempts allowed; empty: not set yet, the handler's retry list decides", get_max_attempts},
    {"due", "due_in_ms", false, 0, "pending tasks: time until due, or how late", get_due},
    {"expected", "expected_time", false, 0, "when it is due", get_expected},
    {"started", "execution_time", false, 0, "start of the last attempt", get_started},
    {"finished", "finish_time", false, 0, "when it became done, failed or cancelled", get_finished},
    {"late", "late_ms", true, 0, "how late the last attempt started", get_late},
    {"delay", "delay_ms", true, 0, "delay as requested", get_delay},
    {"created", "create_time", false, 0, "when it was added", get_created},
    {"updated", "update_time", false, 0, "last change of state", get_updated},
    {"host", NULL, false, OUT_NARROW, "host of the last owner", get_host},
    {"pid", NULL, true, 0, "process id of dqd on that host", get_pid},
    {"lease_until", NULL, false, 0, "running tasks: when another dqd may take it over", get_lease_until},
    {"exit", "exit_code", true, 0, "exit status of the last attempt", get_exit},
    {"signal", NULL, true, 0, "signal that ended the last attempt", get_signal},
    {"error", NULL, false, 60, "why the last attempt failed", get_error},
    {"version", NULL, true, 0, "number of state changes", get_version},
    {"size", "body_size", true, 0, "bytes of the body", get_size},
    {"body", NULL, false, 60, "the body", get_body},
};
/* clang-format on */
const size_t task_column_count = sizeof task_columns / sizeof task_columns[0];
