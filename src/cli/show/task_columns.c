/*
 * task_columns.c - see task_columns.h. One function for each column.
 */
#include "cli/show/task_columns.h"

#define TASK ((const struct task *)row)

enum cell_colour task_status_colour(int status)
{
    static const enum cell_colour colours[TASK_STATUS_COUNT] = {[TASK_PENDING] = CELL_PLAIN,
                                                                [TASK_DONE] = CELL_GOOD,
                                                                [TASK_FAILED] = CELL_BAD,
                                                                [TASK_RUNNING] = CELL_BUSY,
                                                                [TASK_CANCELLED] = CELL_DIM};
    return status >= 0 && status < TASK_STATUS_COUNT ? colours[status] : CELL_PLAIN;
}

OUT_GETTER(id)
{
    cell_set_number(ret, TASK->id);
}

OUT_GETTER(tag)
{
    cell_set_text(ret, TASK->tag);
}

OUT_GETTER(key)
{
    cell_set_text(ret, TASK->key);
}

/* arg: struct task_columns_arg, or NULL. */
static void get_status(const void *row, const void *arg, struct cell *ret)
{
    const struct task_columns_arg *a = arg;
    cell_set_text(ret, task_status_name(TASK->status));
    ret->colour = task_status_colour(TASK->status);
    if (a && a->paused) {
        ret->people = "paused";
        ret->colour = CELL_WARN;
    }
}

OUT_GETTER(attempt)
{
    cell_set_number(ret, TASK->attempt);
}

OUT_GETTER(max_attempts)
{
    if (TASK->max_attempts != 0)
        cell_set_number(ret, TASK->max_attempts);
}

OUT_GETTER(due_in)
{
    if (TASK->status == TASK_PENDING)
        cell_set_until(ret, TASK->expected_at);
}

OUT_GETTER(expected)
{
    cell_set_time(ret, TASK->expected_at);
}

OUT_GETTER(started)
{
    cell_set_time(ret, TASK->execution_at);
}

OUT_GETTER(finished)
{
    cell_set_time(ret, TASK->finish_at);
}

OUT_GETTER(late)
{
    const int64_t from_at = task_late_from(TASK);
    if (TASK->status == TASK_PENDING)
        cell_set_since(ret, from_at);
    else if (TASK->execution_at != TASK_TIME_NONE && TASK->execution_at >= from_at)
        cell_set_duration(ret, TASK->execution_at - from_at);
}

OUT_GETTER(took)
{
    if (TASK->status == TASK_RUNNING) {
        cell_set_since(ret, TASK->execution_at);
        ret->colour = CELL_PLAIN;
    } else if ((TASK->status == TASK_DONE || TASK->status == TASK_FAILED) &&
               TASK->execution_at != TASK_TIME_NONE && TASK->finish_at >= TASK->execution_at) {
        cell_set_duration(ret, TASK->finish_at - TASK->execution_at);
    }
}

OUT_GETTER(delay)
{
    cell_set_duration(ret, TASK->delay_ms);
}

OUT_GETTER(created)
{
    cell_set_time(ret, TASK->create_at);
}

OUT_GETTER(updated)
{
    cell_set_time(ret, TASK->update_at);
}

OUT_GETTER(host)
{
    cell_set_text(ret, TASK->host);
}

OUT_GETTER(pid)
{
    if (TASK->host)
        cell_set_number(ret, TASK->pid);
}

OUT_GETTER(lease_until)
{
    cell_set_time(ret, TASK->lease_until_at);
}

OUT_GETTER(exit)
{
    if (TASK->exit_code >= 0)
        cell_set_number(ret, (uint64_t)TASK->exit_code);
}

OUT_GETTER(signal)
{
    if (TASK->signal > 0)
        cell_set_number(ret, (uint64_t)TASK->signal);
}

OUT_GETTER(error)
{
    cell_set_text(ret, TASK->error);
}

OUT_GETTER(version)
{
    cell_set_number(ret, TASK->version);
}

OUT_GETTER(size)
{
    if (TASK->body_size != SIZE_MAX)
        cell_set_number(ret, TASK->body_size);
}

OUT_GETTER(body)
{
    cell_set_bytes(ret, TASK->body, TASK->body_size);
}

/* clang-format off */
const struct out_column task_columns[] = {
    {"id", true, 0, "number of the task", get_id},
    {"tag", false, OUT_NARROW, "tag, which selects the handler", get_tag},
    {"key", false, 40, "key, unique per tag among pending and running tasks", get_key},
    {"status", false, 0, "pending, running, done, failed or cancelled", get_status},
    {"attempt", true, 0, "attempts started so far", get_attempt},
    {"max_attempts", true, 0, "attempts allowed; empty: not set yet, the handler's retry list decides", get_max_attempts},
    {"due_in", true, 0, "pending tasks: time until it is due; empty: it is due", get_due_in},
    {"late", true, 0, "how late it is, or how late its last attempt started", get_late},
    {"expected", false, 0, "when it is due", get_expected},
    {"started", false, 0, "start of the last attempt", get_started},
    {"finished", false, 0, "when it became done, failed or cancelled", get_finished},
    {"took", true, 0, "run time of the last attempt of a finished task; of a running one, so far", get_took},
    {"delay", true, 0, "delay as requested", get_delay},
    {"created", false, 0, "when it was added", get_created},
    {"updated", false, 0, "last change of state", get_updated},
    {"host", false, OUT_NARROW, "host of the last owner", get_host},
    {"pid", true, 0, "process id of dqd on that host", get_pid},
    {"lease_until", false, 0, "running tasks: when another dqd may take it over", get_lease_until},
    {"exit", true, 0, "exit status of the last attempt", get_exit},
    {"signal", true, 0, "signal that ended the last attempt", get_signal},
    {"error", false, 60, "why the last attempt failed", get_error},
    {"version", true, 0, "number of state changes", get_version},
    {"size", true, 0, "bytes of the body", get_size},
    {"body", false, 60, "the body", get_body},
};
/* clang-format on */
const size_t task_column_count = sizeof task_columns / sizeof task_columns[0];
