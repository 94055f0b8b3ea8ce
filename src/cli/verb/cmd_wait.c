/*
 * cmd_wait.c - dq wait: until tasks are finished, as `wait` does for jobs of a shell.
 *
 * Invariant: it ends when every task is finished or gone, or when the time is up, and if the
 * database is unavailable for a while it only waits longer. A read-only server is not asked: to one
 * that is behind, a task that was begun again is still finished.
 */
#include "cli/judge/fleet.h"
#include "cli/line/select.h"
#include "cli/line/verbs.h"
#include "cli/show/task_columns.h"
#include "store/ask/task_list.h"
#include "store/db/db_connect.h"

#include "base/mem.h"
#include "base/when.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NAP_MIN_MS 20
#define NAP_MAX_MS 1000
#define EXIT_TIMEOUT 75
/* A dqd that has died is noticed only some heartbeats later. */
#define DQDS_EVERY_MS 2000

struct wait_values {
    const char *key, *tag;
    int64_t timeout_ms, retry_for_ms;
};

struct waiting {
    struct cmd_context *c;
    struct out *out;     /* NULL: tables say nothing on stdout, like a shell's wait */
    uint64_t *ids;       /* not known to be finished, ascending */
    size_t count, asked; /* asked: how many at the beginning */
    /* during a look: ids[0..kept) wait on, ids[next..count) are still to come */
    size_t next, kept;
    char *tag;       /* of the first task that waits on */
    int64_t dqds_ms; /* when to look at the dqds next */
    bool none_alive;
};

/* The handler's own status if it has one. */
static int status_of(const struct task *t)
{
    if (t->status == TASK_DONE)
        return 0;
    if (t->status == TASK_FAILED && t->signal > 0)
        return 128 + t->signal;
    if (t->status == TASK_FAILED && t->exit_code > 0)
        return t->exit_code;
    return 1;
}

static void complain_missing(struct waiting *w, uint64_t before)
{
    for (; w->next < w->count && w->ids[w->next] < before; w->next++)
        cmd_complain(w->c, "task %" PRIu64 " does not exist", w->ids[w->next]);
}

static int each_task(const struct task *t, void *arg)
{
    struct waiting *w = arg;
    complain_missing(w, t->id);
    w->next++;
    if (TASK_LIVE & TASK_BIT(t->status)) {
        w->ids[w->kept++] = t->id;
        if (!w->tag && t->status == TASK_PENDING)
            w->tag = mem_strdup(t->tag);
        return 0;
    }
    if (status_of(t) != 0)
        w->c->exit_status = w->asked == 1 ? status_of(t) : 1;
    if (w->out)
        out_row(w->out, t);
    else
        cmd_note(w->c, "task %" PRIu64 " is %s%s%s", t->id, task_status_name(t->status),
                 t->error ? ": " : "", t->error ? t->error : "");
    return 0;
}

/* One look at all that are not finished. If it fails, the tasks that it did not reach stay. */
static int look(struct waiting *w, struct err *err)
{
    struct task_filter f = {.ids = w->ids, .id_count = w->count, .sort = SORT_ID};
    w->next = w->kept = 0;
    int rc = task_list(w->c->db, &f, false, each_task, w, err);
    if (rc == 0)
        complain_missing(w, UINT64_MAX);
    memmove(w->ids + w->kept, w->ids + w->next, (w->count - w->next) * sizeof *w->ids);
    w->count = w->kept + w->count - w->next;
    return rc;
}

/* Says what makes the wait pointless, once, and when that changes. */
static void look_at_dqds(struct waiting *w)
{
    LOCAL_BY(fleet_done) struct fleet f = {0};
    struct err err;
    bool first = !w->dqds_ms;
    if (w->c->quiet || when_steady() < w->dqds_ms)
        return;
    w->dqds_ms = when_steady() + DQDS_EVERY_MS;
    int rc = first ? fleet_load(w->c->db, &f, &err) : fleet_load_dqds(w->c->db, &f, &err);
    if (rc == 0 && w->none_alive && f.alive)
        cmd_note(w->c, "a dqd is alive again");
    else if (rc == 0 && !w->none_alive)
        fleet_say_dqds(w->c, &f);
    if (rc == 0 && first && w->tag)
        fleet_say_tag(w->c, &f, w->tag);
    if (rc == 0)
        w->none_alive = f.alive == 0;
}

static int wait_all(struct waiting *w, int64_t timeout_ms, struct err *err)
{
    int64_t end_at = when_steady() + timeout_ms, nap_ms = NAP_MIN_MS;
    bool away = false, looked = false;
    for (;;) {
        int rc = look(w, err);
        if (rc < 0 && !(looked && err_may_pass(rc)))
            return rc;
        if (rc < 0 && !away)
            cmd_note(w->c, "%s; still waiting", err->text);
        if (rc == 0) /* from now on, it waits for the server, too */
            db_connect_patiently(w->c->db, 0, NULL, NULL);
        away = rc < 0;
        looked = true;
        if (w->count == 0)
            return 0;
        if (rc == 0)
            look_at_dqds(w);
        int64_t left_ms = end_at - when_steady();
        if (timeout_ms >= 0 && left_ms <= 0) {
            w->c->exit_status = EXIT_TIMEOUT;
            cmd_note(w->c, "timeout: %zu of %zu tasks are not finished", w->count, w->asked);
            return 0;
        }
        if (timeout_ms >= 0 && left_ms < nap_ms)
            nap_ms = left_ms;
        nanosleep(&(struct timespec){nap_ms / 1000, nap_ms % 1000 * 1000000}, NULL);
        nap_ms = nap_ms * 3 / 2 + 1 < NAP_MAX_MS ? nap_ms * 3 / 2 + 1 : NAP_MAX_MS;
        if (out_flush(err) < 0) /* readers want the rows of finished tasks now */
            return ERR_SYSTEM;
    }
}

static int run(struct cmd_context *c, struct err *err)
{
    const struct wait_values *v = c->values;
    struct waiting w = {.c = c};
    int rc = select_ids(c, v->key, v->tag, true, &w.ids, &w.count, err);
    if (rc < 0)
        return rc;
    w.asked = w.count;
    const struct out_table table = {task_columns, task_column_count - 1, NULL, NULL,
                                    c->style.format == OUT_TSV ? "id,status,exit,signal,error"
                                                               : NULL};
    if (c->style.format != OUT_TABLE)
        w.out = out_new(&c->style, &table, NULL);
    rc = out_end(w.out, wait_all(&w, v->timeout_ms, err));
    free(w.tag);
    free(w.ids);
    return rc;
}

static const struct cmd_option options[] = {
    SELECT_KEY(offsetof(struct wait_values, key)),
    SELECT_TAG(offsetof(struct wait_values, tag)),
    {"timeout", 0, CMD_DURATION, offsetof(struct wait_values, timeout_ms), "D", NULL, 0},
    CMD_RETRY_FOR(offsetof(struct wait_values, retry_for_ms)),
};

const struct cmd cmd_wait = {
    .name = "wait",
    CMD_OPTIONS(options, wait_values),
    .min_operands = 1,
    .max_operands = -1,
    .instead = "key",
    .run = run,
};
