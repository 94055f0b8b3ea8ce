/*
 * change.c - operators' changes of many tasks.
 *
 * Invariant: nothing is changed that was not named by id, or counted and agreed to.
 */
#include "cli/change.h"
#include "store/rows.h"
#include "store/targets.h"
#include "store/task_change.h"
#include "store/task_delete.h"

#include "base/when.h"
#include "cli/progress.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define IDS_AT_ONCE 500
#define FAULTS_NAMED 20

struct change {
    struct cmd_context *c;
    const struct change_request *request;
    bool dry_run;
    struct progress progress;
    struct task_changed total;
    struct rows_faults faults;
    uint64_t refused; /* ids that do not exist or are not in a state for it */
};

static void show_progress(const struct task_changed *so_far, void *arg)
{
    struct change *ch = arg;
    progress_show(&ch->progress, ch->total.changed + so_far->changed, -1);
}

static int apply(struct change *ch, const struct task_filter *f, bool dry_run,
                 struct task_changed *ret, struct err *err)
{
    *ret = (struct task_changed){0};
    if (!ch->request->change)
        return task_delete(ch->c->db, f, TASK_TIME_NONE, dry_run, show_progress, ch, ret,
                           &ch->faults, err);
    return task_change(ch->c->db, f, ch->request->change, dry_run, show_progress, ch, ret,
                       &ch->faults, err);
}

static void add_up(struct change *ch, const struct task_changed *part)
{
    ch->total.matched += part->matched;
    ch->total.changed += part->changed;
    ch->total.running += part->running;
    ch->total.lost += part->lost;
}

/* ---- by id ---- */

struct found { /* the tasks of one step that exist, in the order of their ids */
    struct change *change;
    const uint64_t *ids; /* asked for, ascending */
    size_t count, next;
    uint64_t *allowed;
    size_t allowed_count;
};

static void refuse_missing(struct found *f, uint64_t before)
{
    for (; f->next < f->count && f->ids[f->next] < before; f->next++) {
        cmd_complain(f->change->c, "task %" PRIu64 " does not exist", f->ids[f->next]);
        f->change->refused++;
    }
}

static int each_found(const struct task *t, void *arg)
{
    struct found *f = arg;
    const struct change_request *r = f->change->request;
    refuse_missing(f, t->id);
    f->next++;
    if (r->from & TASK_BIT(t->status)) {
        f->allowed[f->allowed_count++] = t->id;
        return 0;
    }
    struct buf states = BUF_INIT;
    select_put_statuses(&states, r->from);
    cmd_complain(f->change->c, "task %" PRIu64 " is %s: only %s tasks can be %s", t->id,
                 task_status_name(t->status), states.data, r->past);
    buf_done(&states);
    f->change->refused++;
    return 0;
}

static int change_step(struct change *ch, const uint64_t *ids, size_t count, struct err *err)
{
    uint64_t allowed[IDS_AT_ONCE];
    struct found found = {.change = ch, .ids = ids, .count = count, .allowed = allowed};
    struct task_filter f = {.ids = ids,
                            .id_count = count,
                            .due_before_at = TASK_TIME_NONE,
                            .due_after_at = TASK_TIME_NONE,
                            .since_at = TASK_TIME_NONE,
                            .sort = SORT_ID};
    struct task_changed part;
    size_t faults = ch->faults.count;
    int rc = task_list(ch->c->db, &f, false, each_found, &found, err);
    if (rc < 0)
        return rc;
    refuse_missing(&found, UINT64_MAX);
    if (found.allowed_count == 0)
        return 0;
    f.ids = allowed;
    f.id_count = found.allowed_count;
    rc = apply(ch, &f, ch->dry_run, &part, err);
    add_up(ch, &part);
    if (rc < 0)
        return rc;
    faults = ch->faults.count - faults;
    if (part.changed + faults < found.allowed_count)
        cmd_complain(ch->c,
                     "%" PRIu64
                     " of the tasks changed at the same time and were left alone; see dq show",
                     (uint64_t)(found.allowed_count - faults) - part.changed);
    return 0;
}

static int change_by_ids(struct change *ch, struct err *err)
{
    uint64_t *ids;
    size_t count;
    int rc = cmd_ids(ch->c, true, &ids, &count, err);
    if (rc < 0)
        return rc;
    for (size_t at = 0; rc == 0 && at < count; at += IDS_AT_ONCE)
        rc = change_step(ch, ids + at, count - at < IDS_AT_ONCE ? count - at : IDS_AT_ONCE, err);
    free(ids);
    return rc;
}

/* ---- by filter ---- */

static int agree(struct change *ch, const struct task_filter *f, struct err *err)
{
    struct task_changed count;
    const char *verb = ch->request->verb;
    int rc = apply(ch, f, true, &count, err);
    if (rc < 0 || count.matched <= 1)
        return rc;
    if (!isatty(STDIN_FILENO))
        return err_set(err, ERR_USAGE,
                       "%" PRIu64 " tasks match; use -y to %s them, or --dry-run to count them",
                       count.matched, verb);
    if (!cmd_ask("%s %" PRIu64 " tasks?", verb, count.matched))
        return err_set(err, ERR_NOT_FOUND, "nothing was changed");
    return 0;
}

static int change_by_filter(struct change *ch, const struct change_values *v, struct err *err)
{
    const struct change_request *r = ch->request;
    struct task_changed part = {0};
    struct task_filter f;
    if (!select_given(&v->select) && v->select.statuses == 0)
        return err_set(
            err, ERR_USAGE,
            "no tasks named; give ids, or a filter such as --tag GLOB (--tag '*' matches all)");
    if (v->select.statuses & ~r->from) {
        struct buf states = BUF_INIT;
        select_put_statuses(&states, r->from);
        int rc = err_set(err, ERR_USAGE, "--status: only %s tasks can be %s", states.data, r->past);
        buf_done(&states);
        return rc;
    }
    int rc = select_filter(ch->c, &v->select, r->by_default, &f, err);
    if (rc == 0 && !v->yes && !v->dry_run)
        rc = agree(ch, &f, err);
    if (rc == 0)
        rc = apply(ch, &f, v->dry_run, &part, err);
    add_up(ch, &part);
    if (rc < 0)
        return rc;
    return part.matched == 0 ? err_set(err, ERR_NOT_FOUND, "no task matches") : 0;
}

/* Also after an error: something may have been changed before. */
static void wake(const struct change *ch)
{
    const struct task_change *change = ch->request->change;
    const struct cmd_context *c = ch->c;

    if (!change || ch->dry_run || ch->total.changed == 0 ||
        task_transition(change->event)->to != TASK_PENDING)
        return;
    if (change->expected_at == TASK_TIME_NONE)
        cmd_wake(c, change->delay_ms);
    else
        cmd_wake(c, c->now_at == TASK_TIME_NONE ? 0 : change->expected_at - c->now_at);
}

/* The time that was asked for, as it was understood. */
static void say_when(const struct cmd_context *c, int64_t expected_at)
{
    char local[WHEN_TEXT_SIZE], utc[WHEN_TEXT_SIZE];
    if (expected_at != TASK_TIME_NONE)
        cmd_note(c, "due %s = %s", when_format_local(local, expected_at),
                 when_format_utc(utc, expected_at));
}

/* Of `count` tasks that are, or would be, changed: the running ones lose their handlers. */
static void put_running(struct buf *b, uint64_t count, uint64_t running, bool dry_run)
{
    const char *is = running == 1 ? dry_run ? "is" : "was" : dry_run ? "are" : "were";

    if (running == 0)
        return;
    if (count == 1)
        buf_printf(b, "; it %s running", is);
    else
        buf_printf(b, ", %" PRIu64 " of them %s running", running, is);
    if (!dry_run)
        buf_str(b, running == 1 ? ": its handler is killed" : ": their handlers are killed");
}

static void report(const struct change *ch)
{
    struct buf b = BUF_INIT;
    const struct task_changed *t = &ch->total;
    enum out_format format = ch->c->style.format;
    uint64_t count = ch->dry_run ? t->matched : t->changed;
    if (format == OUT_JSON || format == OUT_NDJSON)
        buf_printf(&b,
                   "{\"matched\":%" PRIu64 ",\"changed\":%" PRIu64 ",\"lost\":%" PRIu64
                   ",\"refused\":%" PRIu64 ",\"dry_run\":%s}\n",
                   t->matched, ch->dry_run ? 0 : t->changed, t->lost, ch->refused,
                   ch->dry_run ? "true" : "false");
    else if (format == OUT_TSV)
        buf_printf(&b, "%s\n%" PRIu64 "\n", ch->dry_run ? "matched" : "changed", count);
    else
        buf_printf(&b, "%" PRIu64 " task%s %s%s", count, count == 1 ? "" : "s",
                   ch->dry_run ? "would be " : "", ch->request->past);
    if (format == OUT_TABLE) {
        if (!ch->c->quiet)
            put_running(&b, count, t->running, ch->dry_run);
        buf_chr(&b, '\n');
    }
    out_write(&b);
    buf_done(&b);
    if (count > 0 && ch->request->change)
        say_when(ch->c, ch->request->change->expected_at);
}

/* Names the tasks that could not be changed, if there are not too many. */
static void complain_faults(const struct change *ch)
{
    const struct rows_faults *f = &ch->faults;

    for (size_t i = 0; i < f->count && i < FAULTS_NAMED; i++)
        cmd_complain(ch->c, "task %" PRIu64 " was not %s: %s", f->items[i].id, ch->request->past,
                     f->items[i].err.text);
    if (f->count > FAULTS_NAMED)
        cmd_complain(ch->c, "%zu more tasks were not %s either", f->count - FAULTS_NAMED,
                     ch->request->past);
    for (size_t i = 0; i < f->count; i++)
        if (f->items[i].err.code == ERR_LOCKED)
            ch->c->exit_status = err_exit_status(ERR_LOCKED);
}

/* Puts what was done before the fault behind its text. */
static void put_done(const struct change *ch, struct err *err)
{
    char text[sizeof err->text];
    uint64_t count = ch->total.changed;

    memcpy(text, err->text, sizeof text);
    err_set(err, err->code, "%s; %" PRIu64 " task%s %s before", text, count,
            count == 1 ? " was" : "s were", ch->request->past);
}

int change_run(struct cmd_context *c, const struct change_values *v, const struct change_request *r,
               struct err *err)
{
    struct change ch = {.c = c, .request = r, .dry_run = v->dry_run};
    if (c->operand_count > 0 && (select_given(&v->select) || v->select.statuses != 0))
        return err_set(err, ERR_USAGE, "ids and a filter cannot be combined");
    progress_init(&ch.progress, c->quiet, r->past);
    int rc = c->operand_count > 0 ? change_by_ids(&ch, err) : change_by_filter(&ch, v, err);
    wake(&ch);
    progress_clear(&ch.progress);
    if (rc != ERR_DUPLICATE)
        complain_faults(&ch);
    if (rc == 0)
        report(&ch);
    else if (ch.total.changed > 0 && !ch.dry_run)
        put_done(&ch, err);
    rows_faults_done(&ch.faults);
    return rc;
}
