/*
 * cmd_export.c - dq export: tasks with everything that belongs to them, one JSON object per line.
 *
 * Tasks are collected until there are BATCH_TASKS or BATCH_BYTES of them; then their outputs and
 * attempts are read, two statements for the whole batch. Invariant: an attempt stands behind its
 * task. Changes that other sessions make meanwhile may be in the file or not, but each line is a
 * task as it was at one moment.
 */
#include "cli/line/select.h"
#include "cli/line/verbs.h"
#include "cli/many/transfer.h"
#include "cli/show/progress.h"

#include "base/interrupt.h"
#include "base/mem.h"
#include "base/order.h"
#include "store/ask/task_get.h"

#include <inttypes.h>
#include <stdlib.h>

#define BATCH_TASKS 100
#define BATCH_BYTES ((size_t)1 << 20)

struct export_values {
    struct select_values select;
};

struct line {
    uint64_t id;
    struct buf text;
    bool open; /* the brace at its end is missing */
};

struct export
{
    struct cmd_context *c;
    struct line lines[BATCH_TASKS];
    size_t count, bytes, written; /* written: lines of the batch */
    struct transfer_end done;     /* what was written */
    uint64_t next_id;             /* 0: the first line is written */
    uint64_t running;
    /* left out, because dq import could not read them; an attempt with the id of its task */
    uint64_t odd, first_odd, odd_attempts, first_odd_attempt;
    struct progress progress;
    struct err *err;
};

static struct line *find_line(struct export *x, uint64_t id)
{
    return bsearch(&id, x->lines, x->count, sizeof x->lines[0], order_ids);
}

static void take_output(uint64_t id, const void *output, size_t size, void *arg)
{
    struct line *line = find_line(arg, id);
    if (line && line->open)
        transfer_put_output(&line->text, output, size);
}

/* With the first task, or with the end: an export that the server refuses writes nothing. */
static void write_begin(struct export *x)
{
    struct buf b = BUF_INIT;

    if (!x->next_id)
        return;
    transfer_put_begin(&b, x->next_id);
    buf_chr(&b, '\n');
    out_take(&b);
    x->next_id = 0;
}

/* Writes the lines of tasks up to this id. */
static void write_up_to(struct export *x, uint64_t id)
{
    write_begin(x);
    for (; x->written < x->count && x->lines[x->written].id <= id; x->written++)
        out_write(&x->lines[x->written].text);
}

static void take_attempt(const struct task_attempt *a, void *arg)
{
    struct export *x = arg;
    struct buf b = BUF_INIT;

    write_up_to(x, a->task_id);
    if (!transfer_can_attempt(a)) {
        x->first_odd_attempt = x->odd_attempts++ ? x->first_odd_attempt : a->task_id;
        return;
    }
    transfer_put_attempt(&b, a);
    buf_chr(&b, '\n');
    out_take(&b);
    x->done.attempts++;
}

static int flush(struct export *x)
{
    uint64_t ids[BATCH_TASKS];

    if (x->count == 0)
        return 0;
    qsort(x->lines, x->count, sizeof x->lines[0], order_ids);
    for (size_t i = 0; i < x->count; i++)
        ids[i] = x->lines[i].id;
    int rc = task_get_outputs(x->c->db, ids, x->count, take_output, x, x->err);
    for (size_t i = 0; i < x->count; i++)
        buf_str(&x->lines[i].text, "}\n");
    x->written = 0;
    if (rc == 0)
        rc = attempt_store_each(x->c->db, ids, x->count, take_attempt, x, x->err);
    if (rc == 0)
        write_up_to(x, UINT64_MAX);
    for (size_t i = 0; i < x->count; i++)
        buf_done(&x->lines[i].text);
    x->count = x->bytes = 0;
    progress_show(&x->progress, x->done.tasks, -1);
    return rc;
}

/* Where it is imported, no dqd has a running task: there it is pending, and the attempt does not
 * count. As whenever it becomes pending, it gets the body with which it was added again. */
static void give_back(struct task *t)
{
    if (t->again_body) {
        t->body = t->again_body;
        t->body_size = t->again_size;
        t->run += t->run < UINT32_MAX;
    }
    t->status = TASK_PENDING;
    t->attempt -= t->attempt > 0;
    t->execution_at = TASK_TIME_NONE;
}

static int each_task(const struct task *t, void *arg)
{
    struct export *x = arg;
    struct task copy = *t;

    if (!transfer_can_task(t)) {
        x->first_odd = x->odd++ ? x->first_odd : t->id;
        return 0;
    }
    if (t->status == TASK_RUNNING) {
        x->running++;
        give_back(&copy);
    }
    struct line *line = &x->lines[x->count++];
    *line = (struct line){.id = t->id, .text = BUF_INIT, .open = t->status != TASK_RUNNING};
    transfer_put_task(&line->text, &copy);
    x->bytes += line->text.len;
    x->done.tasks++;
    bool stop = interrupt_asked();
    int rc = stop || x->count == BATCH_TASKS || x->bytes >= BATCH_BYTES ? flush(x) : 0;
    if (rc == 0 && stop)
        rc = err_set(x->err, ERR_TRANSIENT,
                     "interrupted after %" PRIu64 " task%s: others are missing", x->done.tasks,
                     x->done.tasks == 1 ? "" : "s");
    return rc < 0 ? rc : out_failed();
}

static void say_what_differs(const struct export *x)
{
    struct cmd_context *c = x->c;

    if (x->running)
        cmd_note(c,
                 "%" PRIu64 " running task%s exported as pending: to move %s, stop the dqds first",
                 x->running, x->running == 1 ? " is" : "s are", x->running == 1 ? "it" : "them");
    if (x->odd)
        cmd_complain(
            c,
            "%" PRIu64 " task%s left out, the first is %" PRIu64
            ": an unknown status, a NUL in the tag or key, or an id or version beyond %" PRId64,
            x->odd, x->odd == 1 ? " is" : "s are", x->first_odd, INT64_MAX);
    if (x->odd_attempts)
        cmd_complain(c,
                     "%" PRIu64 " attempt%s left out, the first of task %" PRIu64
                     ": an unknown outcome, or a version beyond %" PRId64,
                     x->odd_attempts, x->odd_attempts == 1 ? " is" : "s are", x->first_odd_attempt,
                     INT64_MAX);
    cmd_note(c, "%" PRIu64 " task%s and %" PRIu64 " attempt%s exported", x->done.tasks,
             x->done.tasks == 1 ? "" : "s", x->done.attempts, x->done.attempts == 1 ? "" : "s");
}

static void write_end(struct export *x)
{
    struct buf b = BUF_INIT;

    write_begin(x);
    transfer_put_end(&b, &x->done);
    buf_chr(&b, '\n');
    out_take(&b);
}

static int run(struct cmd_context *c, struct err *err)
{
    const struct export_values *v = c->values;
    MEM_LOCAL struct export *x = mem_zero(1, sizeof *x);
    struct task_filter f;
    bool unordered = false;

    x->c = c;
    x->err = err;
    int rc = select_filter(c, &v->select, TASK_ANY, &f, err);
    f.sort = SORT_ID;
    f.whole = true;
    f.unordered = &unordered;
    progress_init(&x->progress, c->quiet, "tasks");
    interrupt_catch();
    if (rc == 0)
        rc = import_store_next_id(c->db, &x->next_id, err);
    if (rc == 0)
        rc = task_list(c->db, &f, true, each_task, x, err);
    if (rc >= 0)
        rc = flush(x);
    if (rc == 0 && !out_failed())
        write_end(x);
    progress_clear(&x->progress);
    if (rc == 0 && (rc = out_flush(err)) == 0) {
        select_note_unordered(c, unordered);
        say_what_differs(x);
    }
    for (size_t i = 0; i < x->count; i++)
        buf_done(&x->lines[i].text);
    return rc;
}

static const struct cmd_option options[] = {SELECT_OPTIONS(struct export_values, select.)};

const struct cmd cmd_export = {
    .name = "export",
    CMD_OPTIONS(options, export_values),
    .reads_only = true,
    .formats = OUT_BIT(OUT_NDJSON) | OUT_BIT(OUT_TABLE),
    .run = run,
};
