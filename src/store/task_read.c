/*
 * task_read.c - a row of dq_task as a struct task. Invariant: whatever the cells hold, the task can be used.
 */
#include "store/task_read.h"
#include "store/sql.h"

#include <stdlib.h>
#include <string.h>

void task_read(const struct db_rows *r, struct task *ret)
{
    size_t len;

    task_init(ret);
    ret->id = db_u64(r, 0);
    ret->tag = sql_dup_tag(r, 1);
    ret->key = sql_dup(r, 2, NULL);
    ret->body_size = db_is_null(r, 3) ? SIZE_MAX : (size_t)db_u64(r, 3);
    ret->status = sql_status(r, 4);
    ret->version = db_u64(r, 5);
    ret->attempt = db_u32(r, 6);
    ret->max_attempts = db_u32(r, 7);
    const char *token = db_text(r, 8, &len);
    ret->claimed = token && len == TASK_TOKEN_SIZE;
    if (ret->claimed)
        memcpy(ret->claim_token, token, TASK_TOKEN_SIZE);
    ret->host = sql_dup(r, 9, NULL);
    ret->pid = db_u32(r, 10);
    ret->lease_until_at = db_time(r, 11);
    ret->delay_ms = db_i64(r, 12, 0);
    ret->expected_at = sql_due(r, 13);
    ret->execution_at = db_time(r, 14);
    ret->finish_at = db_time(r, 15);
    ret->exit_code = db_int(r, 16, -1);
    ret->signal = db_int(r, 17, 0);
    ret->error = sql_dup(r, 18, NULL);
    ret->create_at = db_time(r, 19);
    ret->update_at = db_time(r, 20);
}

void task_read_body(const struct db_rows *r, unsigned col, struct task *t)
{
    size_t len;
    void *body = sql_dup(r, col, &len);

    if (!body)
        return;
    free(t->body);
    t->body = body;
    t->body_size = len;
}
