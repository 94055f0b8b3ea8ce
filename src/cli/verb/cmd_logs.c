/*
 * cmd_logs.c - dq logs: the output of a task's last or running attempt, from any host.
 *
 * Invariant: nothing is printed twice, and bytes that are missing are reported. To a terminal the
 * output is made inert, to anything else it goes as it is.
 */
#include "cli/line/cmd.h"
#include "cli/line/select.h"
#include "cli/line/verbs.h"
#include "cli/show/inert.h"

#include "base/mem.h"
#include "base/when.h"
#include "store/ask/task_get.h"
#include "store/ask/task_list.h"
#include "store/db/db_connect.h"
#include "store/fleet/attempt_store.h"
#include "store/fleet/output_store.h"

#include <inttypes.h>
#include <sys/param.h>
#include <time.h>

#define LOOK_MS 400
/* A mark that is not renewed ends soon, so that a follower that was killed leaves nothing. */
#define MARK_MS 5000
#define MARK_AGAIN_MS 1500
#define ANSWER_MS 3000 /* until a dqd that does not answer is reported */

struct logs_values {
    const char *key, *tag;
    bool follow;
    int64_t attempt;
};

struct logs {
    struct cmd_context *c;
    uint64_t id;
    struct task task; /* as last seen, without body and output */
    struct inert inert;
    /* the attempt that is followed; version 0: none yet */
    struct claim_ref attempt;
    uint32_t number; /* of it */
    int64_t begun_at, mark_at;
    uint32_t seq;          /* of the last chunk */
    uint64_t end;          /* of what was printed */
    bool first, last;      /* the first chunk was there, the last one was */
    bool waiting, unheard; /* these notes were printed */
};

/* ---- printing ---- */

static void print_chunk(const struct output_chunk *c, void *arg)
{
    struct logs *l = arg;
    uint64_t known = l->end > c->start ? l->end - c->start : 0;

    if (c->start > l->end && l->first)
        cmd_note(l->c, "(%" PRIu64 " bytes are missing: the handler wrote them too fast)",
                 c->start - l->end);
    else if (c->start > l->end)
        cmd_note(l->c, "(%" PRIu64 " bytes came before this)", c->start);
    l->seq = c->seq;
    l->first = true;
    l->last |= c->last;
    if (c->size > known) {
        inert_print(&l->inert, (const char *)c->data + known, c->size - known);
        l->end = c->start + c->size;
    } else if (c->start > l->end) {
        l->end = c->start;
    }
}

/* ---- what is stored ---- */

static int keep_task(const struct task *t, void *arg)
{
    struct logs *l = arg;

    task_done(&l->task);
    l->task = *t;
    l->task.tag = mem_strdup(t->tag);
    l->task.host = mem_strdup(t->host);
    l->task.error = mem_strdup(t->error);
    l->task.key = NULL;
    l->task.body = l->task.output = NULL;
    return 1;
}

static int look(struct logs *l, struct err *err)
{
    const struct task_filter f = {.ids = &l->id, .id_count = 1};
    int rc = task_list(l->c->db, &f, false, keep_task, l, err);

    return rc ? MIN(rc, 0) : err_set(err, ERR_NOT_FOUND, "task %" PRIu64 " does not exist", l->id);
}

static void note_no_output(const struct logs *l, uint32_t number)
{
    cmd_note(l->c, "attempt %" PRIu32 " of task %" PRIu64 " has no output", number, l->id);
}

/* Of an attempt in the history. *ret_known: whether it is there. */
static int print_recorded(struct logs *l, uint32_t number, bool *ret_known, struct err *err)
{
    struct task_attempt *list;
    size_t count, at;
    int rc = attempt_store_list(l->c->db, l->id, &list, &count, err);

    if (rc < 0)
        return rc;
    for (at = count; at > 0 && list[at - 1].attempt != number; at--)
        ;
    if (at && list[at - 1].output_size)
        inert_print(&l->inert, list[at - 1].output, list[at - 1].output_size);
    else if (at)
        note_no_output(l, number);
    attempt_store_free(list, count);
    *ret_known = at > 0;
    return 0;
}

/* Of the last attempt, which has ended. That of an attempt that was cancelled or taken back is in
 * the history alone, where an attempt that is done may be missing, and an earlier one, from before
 * dq retry, may have its number. */
static int print_stored(struct logs *l, struct err *err)
{
    bool known = false;
    LOCAL_BY(task_done) struct task t = {0};

    task_init(&t);
    int rc = task_get(l->c->db, l->id, &t, err);
    if (rc == 0 && t.output_size)
        inert_print(&l->inert, t.output, t.output_size);
    else if (rc == 0 && t.status != TASK_DONE)
        rc = print_recorded(l, t.attempt, &known, err);
    if (rc == 0 && !t.output_size && !known)
        note_no_output(l, t.attempt);
    return rc;
}

static int print_attempt(struct logs *l, uint32_t number, struct err *err)
{
    bool known;
    int rc = print_recorded(l, number, &known, err);

    if (rc < 0 || known)
        return rc;
    if (number == l->task.attempt && l->task.status != TASK_RUNNING)
        return print_stored(l, err);
    return err_set(err, ERR_NOT_FOUND,
                   "attempt %" PRIu32 " of task %" PRIu64
                   " is not recorded; dq show lists those that are",
                   number, l->id);
}

/* ---- following ---- */

static void note_outcome(struct logs *l)
{
    const struct task *t = &l->task;
    BUF_LOCAL struct buf b = BUF_INIT;

    buf_printf(&b, "task %" PRIu64 " is %s", t->id, task_status_name(t->status));
    if (t->error)
        buf_printf(&b, ": %s", t->error);
    if (t->status == TASK_PENDING) {
        buf_printf(&b, "; attempt %" PRIu32 " is due ", t->attempt + 1);
        cell_put_time(&b, &l->c->style.cell, t->expected_at, false);
    }
    cmd_note(l->c, "%s", b.data);
}

static void note_pending(struct logs *l)
{
    BUF_LOCAL struct buf b = BUF_INIT;

    buf_printf(&b, "task %" PRIu64 " is %s, due ", l->id, task_status_name(l->task.status));
    cell_put_time(&b, &l->c->style.cell, l->task.expected_at, false);
    cmd_note(l->c, "%s; waiting until it starts", b.data);
}

static bool is_running(const struct logs *l)
{
    return l->task.status == TASK_RUNNING &&
           (!l->attempt.version || l->task.version == l->attempt.version);
}

static int mark(struct logs *l, struct err *err)
{
    int64_t now = when_steady();

    if (!l->attempt.version) {
        l->attempt = (struct claim_ref){l->id, l->task.version};
        l->number = l->task.attempt;
        l->begun_at = now;
    }
    if (now < l->mark_at)
        return 0;
    int rc = output_store_mark(l->c->db, &l->attempt, MARK_MS, err);
    if (rc == 0)
        l->mark_at = now + MARK_AGAIN_MS;
    return rc;
}

/* One look at the task and its new output. The task comes first: the end of the output is stored
 * before the task ends. */
static int step(struct logs *l, struct err *err)
{
    int rc = look(l, err);

    if (rc == 0 && is_running(l))
        rc = mark(l, err);
    if (rc == 0 && l->attempt.version)
        rc = output_store_read(l->c->db, &l->attempt, l->seq, print_chunk, l, err);
    return rc;
}

static int finish(struct logs *l, struct err *err)
{
    int rc = 0;

    if (!l->first && l->task.attempt)
        rc = l->task.status == TASK_RUNNING ? print_attempt(l, l->number, err)
                                            : print_stored(l, err);
    else if (l->first && !l->last)
        cmd_note(l->c, "(the end of the output is missing: its dqd did not write it)");
    if (rc == 0)
        rc = out_flush(err);
    if (rc == 0)
        note_outcome(l);
    return rc;
}

static void note_unheard(struct logs *l, bool once)
{
    int waits = output_store_waits(l->c->db, &l->attempt, NULL);

    if (waits > 0)
        cmd_note(l->c, "its dqd, on %s, passes on the output of %d attempts at a time%s",
                 l->task.host, OUTPUT_STORE_ATTEMPTS_MOST,
                 once ? "" : "; waiting until one of the others is not followed any more");
    else
        cmd_note(l->c, "its dqd, on %s, has not sent its output for %ds", l->task.host,
                 ANSWER_MS / 1000);
    l->unheard = true;
}

/* The attempt that is followed, or the task: it may have run between two looks. */
static bool has_ended(const struct logs *l)
{
    return (l->attempt.version || !(TASK_LIVE & TASK_BIT(l->task.status))) && !is_running(l);
}

/* once: until the output so far was printed. */
static int follow(struct logs *l, bool once, struct err *err)
{
    bool away = false;

    /* one that is behind would not know of a new attempt */
    if (!db_connect_is_read_only(l->c->db))
        db_connect_for_reading(l->c->db, false);
    for (;;) {
        int rc = step(l, err);
        if (rc < 0 && !((l->attempt.version || !once) && err_may_pass(rc)))
            return rc;
        if (rc < 0 && !away)
            cmd_note(l->c, "%s; still following", err->text);
        away = rc < 0;
        rc = out_flush(err);
        if (rc < 0)
            return rc;
        if (!away && has_ended(l))
            return finish(l, err);
        if (once && l->first)
            return 0;
        if (!away && !l->attempt.version && !l->waiting) {
            note_pending(l);
            l->waiting = true;
        }
        if (l->attempt.version && !l->first && !l->unheard &&
            when_steady() - l->begun_at > ANSWER_MS) {
            note_unheard(l, once);
            if (once)
                return 0;
        }
        nanosleep(&(struct timespec){0, LOOK_MS * 1000000}, NULL);
    }
}

static int run(struct cmd_context *c, struct err *err)
{
    const struct logs_values *v = c->values;
    struct logs l = {.c = c};
    MEM_LOCAL uint64_t *ids = NULL;
    size_t count;
    int rc = select_ids(c, v->key, v->tag, false, &ids, &count, err);

    if (rc < 0)
        return rc;
    l.id = ids[0];
    task_init(&l.task);
    rc = look(&l, err);
    bool other = v->attempt >= 0 && (uint32_t)v->attempt != l.task.attempt,
         live = TASK_LIVE & TASK_BIT(l.task.status);
    if (rc == 0 && other)
        rc = print_attempt(&l, (uint32_t)v->attempt, err);
    else if (rc == 0 && ((v->follow && live) || l.task.status == TASK_RUNNING))
        rc = follow(&l, !v->follow, err);
    else if (rc == 0 && !l.task.attempt)
        rc = err_set(err, ERR_STATE,
                     "task %" PRIu64 " has not been started yet; with -f, dq logs waits for it",
                     l.id);
    else if (rc == 0)
        rc = print_stored(&l, err);
    if (rc == 0 && v->follow && !live && !other) {
        rc = out_flush(err);
        note_outcome(&l);
    }
    inert_print_end(&l.inert);
    task_done(&l.task);
    return rc;
}

static const struct cmd_option options[] = {
    SELECT_KEY(offsetof(struct logs_values, key)),
    SELECT_TAG(offsetof(struct logs_values, tag)),
    {"follow", 'f', CMD_FLAG, offsetof(struct logs_values, follow), NULL, NULL, 0},
    {"attempt", 0, CMD_COUNT, offsetof(struct logs_values, attempt), "N", NULL, 1},
};

const struct cmd cmd_logs = {
    .name = "logs",
    CMD_OPTIONS(options, logs_values),
    .min_operands = 1,
    .instead = "key",
    .reads_only = true,
    .formats = OUT_BIT(OUT_TABLE),
    .run = run,
};
