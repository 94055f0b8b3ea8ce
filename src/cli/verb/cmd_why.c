/*
 * cmd_why.c - dq why: why a task does not run, what was ruled out, and what helps.
 *
 * It gathers a few facts by small looks; why.c decides.
 */
#include "cli/judge/fleet.h"
#include "cli/judge/schedules.h"
#include "cli/judge/why_facts.h"
#include "cli/line/select.h"
#include "cli/line/verbs.h"
#include "cli/many/schedule_words.h"
#include "store/ask/task_get.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/when.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

struct why_values {
    const char *key;
    const char *tag;
};

struct looked {
    struct task task;
    struct fleet fleet;
    struct why_tag tag;
    struct why_dqd *dqds;
    struct buf last;
    char *nearest;
};

/* ---- facts ---- */

static void see_facts(struct looked *l, int64_t now_at, struct why_facts *f)
{
    const struct task *t = &l->task;
    *f = (struct why_facts){
        .id = t->id,
        .tag = t->tag,
        .status = t->status,
        .due_in_ms = t->expected_at - now_at,
        .late_ms = MAX(now_at - task_late_from(t), 0),
        .version = t->version,
        .attempt = t->attempt,
        .error = t->error,
        .again = t->again_at != TASK_TIME_NONE,
        .host = t->host,
        .pid = t->pid,
        .lease_ms = MAX(t->lease_until_at, now_at) - now_at,
        .limit = {.paused_until_at = l->tag.pause.paused_until_at,
                  .reason = l->tag.pause.pause_reason,
                  .held_until_at = TASK_TIME_NONE},
        .paused_by = l->tag.pause.paused_by,
        .paused_as = l->tag.pause.tag,
        .now_at = now_at,
        .expires_at = MAX(t->expires_at, 0),
        .before = l->tag.before,
        .before_most = WHY_STORE_MOST,
        .ran_ms = t->execution_at == TASK_TIME_NONE ? -1 : MAX(now_at - t->execution_at, 0),
        .mean_ms = l->tag.mean_ms,
        .usual_ms = l->tag.usual_ms};
    l->dqds = why_facts_see(&l->fleet, t->tag, l->tag.owners, l->tag.owner_count, f);
    int64_t longest_ms = 0, ended_ms = WHEN_DAY; /* as SQL_LEASE_AHEAD has it */
    for (size_t i = 0; i < l->fleet.count; i++) {
        const struct poller_info *d = &l->fleet.dqds[i];
        const bool owner = t->claimed && why_facts_is_owner(d, t->claim_token);
        longest_ms = MAX(longest_ms, d->lease_ms);
        ended_ms = owner ? 0 : ended_ms;
        f->owner_alive |= owner && d->alive;
    }
    f->longest_id = l->tag.longest_id;
    f->longest_ms = f->longest_id ? now_at - l->tag.longest_from_at : 0;
    for (size_t i = 0; i < f->dqd_count; i++)
        f->timeout_ms = MAX(f->timeout_ms, l->dqds[i].timeout_ms);
    f->lease_ahead = f->lease_ms > MAX(longest_ms, ended_ms) + WHEN_MINUTE;
    if (l->fleet.count || l->fleet.ended) {
        fleet_put_last(&l->last, &l->fleet);
        f->last_dqd = l->last.data;
    }
    f->nearest = l->nearest = fleet_nearest(&l->fleet, t->tag);
}

static int look(struct cmd_context *c, uint64_t id, struct looked *l, struct err *err)
{
    int rc = task_get_short(c->db, id, &l->task, err);
    if (rc == 0)
        rc = fleet_load(c->db, &l->fleet, err);
    if (rc == 0)
        rc = why_store_read(c->db, &l->task, &l->tag, err);
    return rc;
}

static void looked_done(struct looked *l)
{
    task_done(&l->task);
    fleet_done(&l->fleet);
    why_store_done(&l->tag);
    buf_done(&l->last);
    free(l->dqds);
    free(l->nearest);
}

/* ---- printing ---- */

static void put_escaped(struct buf *b, const char *text)
{
    text_escape(b, text, strlen(text), 0);
}

static void put_lines(struct buf *b, const char *title, const struct why_lines *lines)
{
    size_t width = 0;
    if (lines->count)
        buf_printf(b, "%s\n", title);
    for (size_t i = 0; i < lines->count; i++)
        width = MAX(width, text_width(lines->items[i].text, strlen(lines->items[i].text)));
    for (size_t i = 0; i < lines->count; i++) {
        const struct why_line *l = &lines->items[i];
        buf_str(b, "  ");
        put_escaped(b, l->text);
        if (l->detail) {
            buf_printf(b, "%*s", (int)(width - text_width(l->text, strlen(l->text)) + 4), "");
            put_escaped(b, l->detail);
        }
        buf_chr(b, '\n');
    }
}

/* In one line, separated by commas. */
static void put_list(struct buf *b, const char *title, const struct why_lines *lines)
{
    if (lines->count)
        buf_printf(b, "%s: ", title);
    for (size_t i = 0; i < lines->count; i++) {
        buf_str(b, i ? ", " : "");
        put_escaped(b, lines->items[i].text);
    }
    buf_str(b, lines->count ? "\n" : "");
}

static void put_reasons(struct buf *b, bool waits, const struct why *w)
{
    put_lines(b, waits ? "it waits because" : "it does not wait", &w->causes);
    put_list(b, "ruled out", &w->ruled_out);
    put_lines(b, "what helps", &w->remedies);
}

static void put_table(struct buf *b, const struct why_facts *f, const struct why *w)
{
    char text[WHEN_TEXT_SIZE];
    bool waits = f->status == TASK_PENDING;
    buf_printf(b, "task %" PRIu64 ", ", f->id);
    put_escaped(b, f->tag);
    buf_printf(b, ", %s", task_status_name(f->status));
    if (waits)
        buf_printf(b, f->due_in_ms > 0 ? ", due in %s" : ", %s late",
                   when_format_rough(text, f->due_in_ms > 0 ? f->due_in_ms : f->late_ms));
    buf_chr(b, '\n');
    put_reasons(b, waits, w);
}

static void put_texts(struct buf *b, const struct cell_style *style, const char *name,
                      const struct why_lines *lines)
{
    buf_printf(b, ",\"%s\":[", name);
    for (size_t i = 0; i < lines->count; i++) {
        const struct why_line *l = &lines->items[i];
        buf_str(b, i ? "," : "");
        if (!l->name) {
            json_put_string(b, l->text, strlen(l->text));
            continue;
        }
        buf_chr(b, '{');
        cell_put_json_text(b, style, "cause", l->name);
        cell_put_json_text(b, style, "text", l->text);
        cell_put_json_text(b, style, "detail", l->detail);
        buf_chr(b, '}');
    }
    buf_chr(b, ']');
}

static void put_reasons_json(struct buf *b, const struct cell_style *style, const struct why *w)
{
    put_texts(b, style, "causes", &w->causes);
    put_texts(b, style, "ruled_out", &w->ruled_out);
    put_texts(b, style, "remedies", &w->remedies);
    buf_str(b, "}\n");
}

static void put_json(struct buf *b, const struct cell_style *style, const struct why_facts *f,
                     const struct why *w)
{
    buf_printf(b, "{\"id\":%" PRIu64, f->id);
    cell_put_json_text(b, style, "tag", f->tag);
    cell_put_json_text(b, style, "status", task_status_name(f->status));
    put_reasons_json(b, style, w);
}

/* ---- the verb ---- */

static int explain(struct cmd_context *c, uint64_t id, struct err *err)
{
    LOCAL_BY(looked_done) struct looked l = {.last = BUF_INIT};
    BUF_LOCAL struct buf b = BUF_INIT;
    struct why_facts f;
    struct why w;
    task_init(&l.task);
    int rc = look(c, id, &l, err);
    if (rc == 0)
        rc = cmd_now(c, &c->style.cell.now_at, err);
    if (rc == 0) {
        see_facts(&l, c->style.cell.now_at, &f);
        why_decide(&f, &w);
        why_facts_lock(c->db, &f, &w);
        if (c->style.format == OUT_TABLE)
            put_table(&b, &f, &w);
        else
            put_json(&b, &c->style.cell, &f, &w);
        out_write(&b);
        why_lines_done(&w);
    }
    return rc;
}

static int explain_schedule(struct cmd_context *c, const char *name, struct err *err)
{
    LOCAL_BY(schedule_row_done) struct schedule s = {0};
    LOCAL_BY(fleet_done) struct fleet fleet = {0};
    LOCAL_BY(why_lines_done) struct why w = {0};
    BUF_LOCAL struct buf b = BUF_INIT, sentence = BUF_INIT;
    const struct cell_style *style = &c->style.cell;
    int rc = schedule_store_find(c->db, name, false, &s, err);
    if (rc == 0)
        rc = fleet_load(c->db, &fleet, err);
    if (rc == 0)
        rc = cmd_now(c, &c->style.cell.now_at, err);
    if (rc < 0)
        return rc;
    schedules_why(&s, &fleet, style->now_at, &w);
    if (c->style.format == OUT_TABLE) {
        schedule_words_put_sentence(&sentence, &s);
        buf_str(&b, "schedule ");
        put_escaped(&b, s.name);
        buf_str(&b, ", ");
        put_escaped(&b, s.tag);
        buf_str(&b, ", ");
        put_escaped(&b, sentence.data);
        buf_chr(&b, '\n');
        put_reasons(&b, true, &w);
    } else {
        buf_chr(&b, '{');
        cell_put_json_text(&b, style, "schedule", s.name);
        cell_put_json_text(&b, style, "tag", s.tag);
        put_reasons_json(&b, style, &w);
    }
    out_write(&b);
    return 0;
}

static int run(struct cmd_context *c, struct err *err)
{
    const struct why_values *v = c->values;
    MEM_LOCAL uint64_t *ids = NULL;
    uint64_t id = 0;
    size_t count = 0;
    if (!v->tag && !v->key && !c->operand_count)
        return err_set(err, ERR_USAGE,
                       "give the id of a task, the name of a schedule, --tag with a tag, or --key");
    if (v->tag && !v->key && !c->operand_count) {
        int rc = why_store_first(c->db, v->tag, &id, err);
        if (rc == 0) {
            fleet_note_tag(c, v->tag);
            return err_set(err, ERR_NOT_FOUND, "no task of tag \"%s\" is pending", v->tag);
        }
        return rc < 0 ? rc : explain(c, id, err);
    }
    if (c->operand_count && strcmp(c->operands[0], "-") != 0 &&
        c->operands[0][strspn(c->operands[0], "0123456789")])
        return explain_schedule(c, c->operands[0], err);
    int rc = select_ids(c, v->key, v->tag, false, &ids, &count, err);
    return rc == 0 ? explain(c, ids[0], err) : rc;
}

static const struct cmd_option options[] = {
    {"tag", 't', CMD_NAME, offsetof(struct why_values, tag), "TAG", NULL, 0},
    SELECT_KEY(offsetof(struct why_values, key)),
};

const struct cmd cmd_why = {
    .name = "why",
    CMD_OPTIONS(options, why_values),
    .max_operands = 1,
    .reads_only = true,
    .formats = OUT_BIT(OUT_TABLE) | OUT_BIT(OUT_JSON) | OUT_BIT(OUT_NDJSON),
    .run = run,
};
