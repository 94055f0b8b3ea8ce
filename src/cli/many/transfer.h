/*
 * transfer.h - the beginning, a task, an attempt of one, and the end, as a line of the file that
 * `dq export` writes and `dq import` reads. Nothing is lost: times are exact to the millisecond,
 * texts to the byte. A row of an application is moved as it is, also if dq add would refuse its tag
 * or key.
 */
#ifndef DQ_CLI_MANY_TRANSFER_H
#define DQ_CLI_MANY_TRANSFER_H

#include "base/json.h"
#include "store/ask/import_store.h"

/* A line has a body and an output, each of which the server takes in a packet, and JSON has six
 * bytes for one that is not printable. */
#define TRANSFER_LINE_PACKETS 16

/* Whether a row can be read back: not if an application gave it an unknown status or outcome, a
 * NUL in the tag or key, or an id or version beyond INT64_MAX, the greatest number that
 * json_read_object reads. */
bool transfer_can_task(const struct task *t);
bool transfer_can_attempt(const struct task_attempt *a);
/* Append an object; that of a task without its output and its closing brace, which
 * transfer_put_output and the caller append. */
void transfer_put_task(struct buf *b, const struct task *t);
void transfer_put_output(struct buf *b, const void *output, size_t size);
void transfer_put_attempt(struct buf *b, const struct task_attempt *a);

/* The first line of an export: ids from next_id on have never been given there. */
void transfer_put_begin(struct buf *b, uint64_t next_id);
/* The last line of an export, by which an import knows that none is missing: how many lines are
 * before it. */
struct transfer_end {
    uint64_t tasks, attempts;
};
void transfer_put_end(struct buf *b, const struct transfer_end *e);

/* Whether a line is the first one, one of an attempt, or the last one; else it should be one of a
 * task. */
bool transfer_is_begin(const char *line, size_t len);
bool transfer_is_attempt(const char *line, size_t len);
bool transfer_is_end(const char *line, size_t len);
/* Read a line. *ret is heap memory, to be freed by task_done or attempt_store_free, also after
 * ERR_DATA. */
int transfer_read_task(struct json_reader *r, const char *line, size_t len, struct task *ret,
                       struct err *err) __attribute__((warn_unused_result));
int transfer_read_attempt(struct json_reader *r, const char *line, size_t len,
                          struct task_attempt *ret, struct err *err)
    __attribute__((warn_unused_result));
int transfer_read_begin(struct json_reader *r, const char *line, size_t len, uint64_t *ret_next_id,
                        struct err *err) __attribute__((warn_unused_result));
int transfer_read_end(struct json_reader *r, const char *line, size_t len, struct transfer_end *ret,
                      struct err *err) __attribute__((warn_unused_result));

#endif
