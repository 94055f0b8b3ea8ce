/*
 * cmd_purge.c - dq purge: what retention would delete, now, in small steps.
 */
#include "cli/line/verbs.h"
#include "cli/many/act.h"
#include "cli/many/change.h"

#include "base/interrupt.h"
#include "base/mem.h"
#include "store/ask/targets.h"

#include <inttypes.h>

struct purge_values {
    const char *tag;
    unsigned statuses;
    int64_t older_than_ms;
    bool dry_run;
};

struct purge {
    struct act act;
    uint64_t deleted;
    int64_t before_at; /* when tasks of the present status must have finished */
};

static bool is_old(const struct task *t, void *arg)
{
    const struct purge *p = arg;
    return t->finish_at < p->before_at; /* one without a time, of an application, is */
}

/* How old a task of this status may get; 0: any age. */
static int64_t retention_of(const struct conf_retention *r, int status)
{
    return status == TASK_DONE     ? r->done_ms
           : status == TASK_FAILED ? r->failed_ms
                                   : r->cancelled_ms;
}

static int purge_status(struct cmd_context *c, const struct purge_values *v, int status,
                        struct purge *p, struct err *err)
{
    struct task_filter f = {.tag_glob = v->tag, .statuses = TASK_BIT(status)};
    LOCAL_BY(targets_done) struct targets old = {0};
    struct task_changed changed = {0};
    int64_t age_ms = v->older_than_ms >= 0 ? v->older_than_ms
                                           : retention_of(&c->conf->retention, status),
            now_at;
    if (v->older_than_ms < 0 && age_ms == 0)
        return 0;
    int rc = cmd_now(c, &now_at, err);
    p->before_at = now_at - age_ms;
    if (rc == 0)
        rc = targets_list(c->db, &f, TASK_FINISHED, is_old, p, &old, err);
    if (rc == 0 && !v->dry_run)
        rc = change_apply(c, &old, NULL, &p->act.event, "deleted", &changed, err);
    p->deleted += v->dry_run ? old.count : changed.changed;
    return rc;
}

static int run(struct cmd_context *c, struct err *err)
{
    const struct purge_values *v = c->values;
    unsigned statuses = v->statuses ? v->statuses : TASK_FINISHED;
    struct purge p = {.deleted = 0};
    int rc = 0;
    if (statuses & TASK_LIVE)
        return err_set(err, ERR_USAGE,
                       "--status: only done, failed or cancelled tasks can be purged");
    p.act = act_of(c, NULL, NULL);
    for (int s = 0; rc == 0 && !interrupt_asked() && s < TASK_STATUS_COUNT; s++) {
        if (statuses & TASK_BIT(s))
            rc = purge_status(c, v, s, &p, err);
    }
    if (rc == 0 && interrupt_asked())
        rc = err_set(err, ERR_TRANSIENT, "interrupted");
    act_done(&p.act);
    if (rc < 0)
        return p.deleted ? err_prefix(err, "after %" PRIu64 " tasks", p.deleted) : rc;
    enum out_format format = c->style.format;
    if (format == OUT_JSON || format == OUT_NDJSON)
        out_printf("{\"deleted\":%" PRIu64 ",\"dry_run\":%s}\n", p.deleted,
                   v->dry_run ? "true" : "false");
    else if (format == OUT_TSV)
        out_printf("deleted\n%" PRIu64 "\n", p.deleted);
    else
        out_printf("%" PRIu64 " task%s %sdeleted\n", p.deleted, p.deleted == 1 ? "" : "s",
                   v->dry_run ? "would be " : "");
    return 0;
}

#define FIELD(name) offsetof(struct purge_values, name)
static const struct cmd_option options[] = {
    {"older-than", 0, CMD_DURATION, FIELD(older_than_ms), "D", NULL, 0},
    {"status", 's', CMD_STATUSES, FIELD(statuses), "S[,S]", NULL, 0},
    {"tag", 't', CMD_TAGS, FIELD(tag), "GLOB", NULL, 0},
    {"dry-run", 0, CMD_FLAG, FIELD(dry_run), NULL, NULL, 0},
};

const struct cmd cmd_purge = {
    .name = "purge",
    CMD_OPTIONS(options, purge_values),
    .formats = OUT_NO_ID,
    .run = run,
};
