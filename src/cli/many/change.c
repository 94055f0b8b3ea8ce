/*
 * change.c - operators' changes of many tasks.
 *
 * Invariant: nothing is changed that was not named by id, or counted and agreed to.
 */
#include "cli/many/change.h"
#include "store/ask/targets.h"
#include "store/ask/task_change.h"
#include "store/row/rows.h"

#include "base/interrupt.h"
#include "base/mem.h"
#include "base/when.h"
#include "cli/judge/survey.h"
#include "cli/line/confirm.h"
#include "cli/many/act.h"
#include "cli/show/progress.h"

#include <inttypes.h>
#include <sys/param.h>

#define FAULTS_NAMED 20
#define PROGRESS_EVERY 1000 /* tasks found */

struct change {
    struct cmd_context *c;
    const struct change_values *values;
    const struct change_request *request;
    struct task_change change; /* unless it deletes */
    bool deletes;
    unsigned from; /* states that allow it */
    struct targets targets;
    struct survey survey; /* of the targets */
    struct progress progress;
    struct task_changed done;
    uint64_t refused; /* ids that do not exist or are not in a state for it */
};

/* ---- which tasks ---- */

struct asked { /* ids that were asked for, ascending; those before `next` have been dealt with */
    struct change *change;
    const uint64_t *ids;
    size_t count, next;
};

static void refuse_missing(struct asked *a, uint64_t before)
{
    for (; a->next < a->count && a->ids[a->next] < before; a->next++) {
        cmd_complain(a->change->c, "task %" PRIu64 " does not exist", a->ids[a->next]);
        a->change->refused++;
    }
}

static bool take_asked(const struct task *t, void *arg)
{
    struct asked *a = arg;
    const struct change_request *r = a->change->request;
    refuse_missing(a, t->id);
    a->next++;
    if (a->change->from & TASK_BIT(t->status)) {
        survey_add(&a->change->survey, t);
        return true;
    }
    BUF_LOCAL struct buf states = BUF_INIT;
    select_put_statuses(&states, a->change->from);
    cmd_complain(a->change->c, "task %" PRIu64 " is %s: only %s tasks can be %s", t->id,
                 task_status_name(t->status), states.data, r->past);
    a->change->refused++;
    return false;
}

static int find_by_ids(struct change *ch, const uint64_t *ids, size_t count, struct err *err)
{
    struct asked asked = {.change = ch, .ids = ids, .count = count};
    struct task_filter f = {.ids = ids, .id_count = count, .sort = SORT_ID};
    int rc = targets_list(ch->c->db, &f, TASK_ANY, take_asked, &asked, &ch->targets, err);
    if (rc == 0)
        refuse_missing(&asked, UINT64_MAX);
    return rc;
}

static bool take_matching(const struct task *t, void *arg)
{
    struct change *ch = arg;
    survey_add(&ch->survey, t);
    if (ch->survey.tasks % PROGRESS_EVERY == 0)
        progress_show(&ch->progress, ch->survey.tasks, -1);
    return true;
}

static int find_by_filter(struct change *ch, struct err *err)
{
    const struct change_request *r = ch->request;
    const struct change_values *v = ch->values;
    struct task_filter f;
    bool unordered = false;
    if (!select_given(&v->select) && v->select.statuses == 0)
        return err_set(
            err, ERR_USAGE,
            "no tasks named; give ids, or a filter such as --tag GLOB (--tag '*' matches all)");
    if (v->select.statuses & ~ch->from) {
        BUF_LOCAL struct buf states = BUF_INIT;
        select_put_statuses(&states, ch->from);
        return err_set(err, ERR_USAGE, "--status: only %s tasks can be %s", states.data, r->past);
    }
    int rc = select_filter(ch->c, &v->select, r->by_default ? r->by_default : ch->from, &f, err);
    if (rc < 0)
        return rc;
    f.limit = v->limit > 0 ? (size_t)v->limit : 0;
    f.unordered = &unordered;
    progress_init(&ch->progress, ch->c->quiet, "tasks found");
    rc = targets_list(ch->c->db, &f, ch->from, take_matching, ch, &ch->targets, err);
    progress_clear(&ch->progress);
    select_note_unordered(ch->c, unordered);
    if (rc == 0 && ch->targets.count == 0)
        rc = err_set(err, ERR_NOT_FOUND, "no task matches");
    return rc;
}

static int agree(struct change *ch, struct err *err)
{
    BUF_LOCAL struct buf tags = BUF_INIT;
    bool many = ch->targets.count > 1 && ch->c->operand_count == 0;
    if (ch->targets.count == 0 || ch->values->yes || !(many || ch->values->ask))
        return 0;
    survey_put_tags(&tags, &ch->survey);
    return confirm_change(ch->c, ch->request->verb, ch->targets.count, tags.data, err);
}

/* ---- the change ---- */

static bool step_done(const struct task_changed *so_far, void *arg)
{
    uint64_t passed = so_far->changed + so_far->lost;
    progress_show(arg, so_far->changed, (double)passed / (double)so_far->matched);
    return !interrupt_asked();
}

/* Names the tasks that could not be changed, if there are not too many. */
static void complain_faults(struct cmd_context *c, const struct rows_faults *f, const char *past)
{
    for (size_t i = 0; i < f->count && i < FAULTS_NAMED; i++)
        cmd_complain(c, "task %" PRIu64 " was not %s: %s", f->items[i].id, past,
                     f->items[i].err.text);
    if (f->count > FAULTS_NAMED)
        cmd_complain(c, "%zu more tasks were not %s either", f->count - FAULTS_NAMED, past);
    for (size_t i = 0; i < f->count; i++)
        if (f->items[i].err.code == ERR_LOCKED)
            c->exit_status = err_exit_status(ERR_LOCKED);
}

int change_apply(struct cmd_context *c, const struct targets *x, const struct task_change *change,
                 struct event_act *act, const char *past, struct task_changed *ret, struct err *err)
{
    struct progress progress;
    LOCAL_BY(rows_faults_done) struct rows_faults faults = {0};
    const struct targets_steps steps = {act, step_done, &progress};
    progress_init(&progress, c->quiet, past);
    interrupt_catch();
    int rc = task_change(c->db, x, change, &steps, ret, &faults, err);
    progress_clear(&progress);
    ret->faulty = faults.count;
    if (rc != ERR_DUPLICATE)
        complain_faults(c, &faults, past);
    if (rc == 0 && ret->changed + ret->lost < x->count)
        rc = err_set(err, ERR_TRANSIENT, "interrupted: %" PRIu64 " of %zu tasks were %s",
                     ret->changed, x->count, past);
    return rc;
}

static int apply(struct change *ch, const uint64_t *ids, size_t count, struct err *err)
{
    const struct change_request *r = ch->request;
    struct cmd_context *c = ch->c;
    if (ch->targets.count == 0)
        return 0;
    LOCAL_BY(act_done) struct act act = act_of_tasks(c, ids, count, survey_only_tag(&ch->survey));
    if (ch->targets.count == 1)
        act.event.task_id = ch->targets.refs[0].id;
    return change_apply(c, &ch->targets, ch->deletes ? NULL : &ch->change, &act.event, r->past,
                        &ch->done, err);
}

/* Also after an error: something may have been changed before. */
static void wake(const struct change *ch)
{
    const struct task_change *change = &ch->change;
    const struct cmd_context *c = ch->c;

    if (ch->deletes || ch->done.changed == 0 || task_transition(change->event)->to != TASK_PENDING)
        return;
    if (change->expected_at == TASK_TIME_NONE)
        cmd_wake(c, change->delay_ms);
    else
        cmd_wake(c, c->now_at == TASK_TIME_NONE ? 0 : change->expected_at - c->now_at);
}

/* ---- the report ---- */

/* The time that was asked for, as it was understood. */
static void say_when(const struct change *ch)
{
    char over[WHEN_TEXT_SIZE];
    BUF_LOCAL struct buf due = BUF_INIT;
    if (ch->change.expected_at != TASK_TIME_NONE) {
        cmd_put_instant(&due, ch->change.expected_at);
        cmd_note(ch->c, "due %s", due.data);
    }
    if (!ch->deletes && task_transition(ch->change.event)->due == DUE_GIVEN && ch->survey.expiring)
        cmd_note(ch->c,
                 ch->change.moves_expiry ? "%" PRIu64 " of them expire: that time moves along"
                                         : "%" PRIu64 " of them would expire: they do not any more",
                 ch->survey.expiring);
    if (ch->values->over_ms > 0)
        cmd_note(ch->c, "spread evenly over %s", when_format_duration(over, ch->values->over_ms));
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
        buf_str(b, running == 1 ? ": its handler is killed, or goes on with the rest of its batch"
                                : ": their handlers are killed, or go on with the rest of a batch");
}

/* They will not run again either. */
static void put_again(struct buf *b, uint64_t count, uint64_t again, bool dry_run)
{
    if (again && count == 1)
        buf_printf(b, "; it was added again meanwhile, which %s, too",
                   dry_run ? "would be cancelled" : "is cancelled");
    else if (again)
        buf_printf(b, "; %" PRIu64 " of them %s added again meanwhile, which %s, too", again,
                   again == 1 ? "was" : "were", dry_run ? "would be cancelled" : "is cancelled");
}

static void put_line(struct buf *b, const struct change *ch, uint64_t count, uint64_t running)
{
    bool dry_run = ch->values->dry_run;
    buf_printf(b, "%" PRIu64 " task%s %s%s", count, count == 1 ? "" : "s",
               dry_run ? "would be " : "", ch->request->past);
    if (!ch->c->quiet && running) {
        put_running(b, count, running, dry_run);
        put_again(b, count, ch->survey.again, dry_run);
    }
    buf_chr(b, '\n');
}

/* What was done or, in a dry run, what would be. */
static int report(struct change *ch, struct err *err)
{
    struct buf b = BUF_INIT;
    bool dry_run = ch->values->dry_run;
    enum out_format format = ch->c->style.format;
    uint64_t count = dry_run ? ch->targets.count : ch->done.changed;
    int rc = 0;
    if (format == OUT_JSON || format == OUT_NDJSON) {
        buf_printf(&b,
                   "{\"matched\":%zu,\"changed\":%" PRIu64 ",\"lost\":%" PRIu64
                   ",\"refused\":%" PRIu64 ",\"dry_run\":%s",
                   ch->targets.count, ch->done.changed, ch->done.lost, ch->refused,
                   dry_run ? "true" : "false");
        rc = dry_run ? survey_put_members(&b, ch->c, &ch->survey, err) : 0;
        buf_str(&b, "}\n");
    } else if (format == OUT_TSV) {
        buf_printf(&b, "%s\n%" PRIu64 "\n", dry_run ? "matched" : "changed", count);
    } else {
        put_line(&b, ch, count, dry_run ? ch->survey.running : ch->done.running);
    }
    if (rc == 0)
        out_take(&b);
    if (rc == 0 && dry_run && format == OUT_TABLE && !ch->c->quiet)
        rc = survey_print(ch->c, &ch->survey, err);
    if (rc == 0 && count > 0)
        say_when(ch);
    return rc;
}

/* Of tasks that were named, that is an error; of those that a filter found, some are always on
 * their way. */
static void say_lost(const struct change *ch)
{
    uint64_t lost = ch->done.lost - MIN(ch->done.lost, ch->done.faulty);
    BUF_LOCAL struct buf b = BUF_INIT;

    buf_printf(&b, "%" PRIu64 " of the tasks changed at the same time and were left alone", lost);
    if (lost && ch->c->operand_count > 0)
        cmd_complain(ch->c, "%s; see dq show", b.data);
    else if (lost)
        cmd_note(ch->c, "%s", b.data);
}

/* Puts what was done before the fault behind its text. */
static void put_done(const struct change *ch, struct err *err)
{
    uint64_t count = ch->done.changed;

    err_set(err, err->code, "%s; %" PRIu64 " task%s %s before", err->text, count,
            count == 1 ? " was" : "s were", ch->request->past);
}

static int run(struct change *ch, struct err *err)
{
    struct cmd_context *c = ch->c;
    const struct change_values *v = ch->values;
    MEM_LOCAL uint64_t *ids = NULL;
    size_t count = 0;
    int rc = c->operand_count > 0 ? cmd_ids(c, true, &ids, &count, err) : 0;
    if (rc == 0)
        rc = c->operand_count > 0 ? find_by_ids(ch, ids, count, err) : find_by_filter(ch, err);
    if (rc == 0 && !v->dry_run)
        rc = agree(ch, err);
    if (rc == 0 && !v->dry_run)
        rc = apply(ch, ids, count, err);
    return rc;
}

int change_run(struct cmd_context *c, struct err *err)
{
    const struct change_values *v = c->values;
    const struct change_request *r = c->cmd->request;
    struct change ch = {.c = c,
                        .values = v,
                        .request = r,
                        .deletes = r->event == CHANGE_DELETE,
                        .change = {.event = (enum task_event)r->event,
                                   .expected_at = TASK_TIME_NONE,
                                   .delay_ms = MAX(v->in_ms, 0),
                                   .over_ms = MAX(v->over_ms, 0),
                                   .moves_expiry = r->moves_expiry}};
    ch.from = ch.deletes ? TASK_FINISHED : task_transition(ch.change.event)->from;
    bool filter = select_given(&v->select) || v->select.statuses != 0 || v->limit >= 0;
    if (r->moves_expiry && v->in_ms < 0 && !v->at.text)
        return err_set(err, ERR_USAGE, "no new time given; use --in D or --at TIME");
    if (c->operand_count > 0 && filter)
        return err_set(err, ERR_USAGE, "ids and a filter cannot be combined");
    int rc = cmd_resolve(c, &v->at, &ch.change.expected_at, err);
    if (rc == 0)
        rc = run(&ch, err);
    wake(&ch);
    if (rc == 0)
        say_lost(&ch);
    if (rc == 0)
        rc = report(&ch, err);
    else if (ch.done.changed > 0 && rc != ERR_TRANSIENT)
        put_done(&ch, err);
    survey_done(&ch.survey);
    targets_done(&ch.targets);
    return rc;
}
