/*
 * cmd_show.c - dq show: everything about a task.
 *
 * In JSON it is exact, bytes included; for people bodies and output are escaped line by line and
 * cut.
 */
#include "cli/judge/fleet.h"
#include "cli/line/select.h"
#include "cli/line/verbs.h"
#include "cli/show/task_columns.h"

#include "base/mem.h"
#include "base/text.h"
#include "store/ask/task_get.h"
#include "store/fleet/attempt_store.h"
#include "store/fleet/event_store.h"
#include "store/fleet/limit_store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN_BYTES 4000

struct show_values {
    const char *key, *tag;
    bool full;
};

struct shown { /* one task and what belongs to it */
    struct task task;
    struct task_attempt *attempts;
    size_t attempt_count;
    char *handler; /* of a pending task; NULL: none, or not known */
    enum fleet_serves serves;
    int64_t paused_until_at; /* as in struct tag_info */
    char *pause_text;        /* NULL: not paused */
    /* of a cancelled task; NULL: an application did it, or that is not known any more */
    char *cancelled_by, *cancelled_with;
};

/* ---- the columns of an attempt ---- */

#define ATTEMPT ((const struct task_attempt *)row)

OUT_GETTER(took)
{
    if (ATTEMPT->start_at != TASK_TIME_NONE && ATTEMPT->finish_at != TASK_TIME_NONE) {
        cell_set_duration(ret, ATTEMPT->finish_at - ATTEMPT->start_at);
    }
}

#define COLUMN_ROW(...) COLUMN(task_attempt, __VA_ARGS__),
static const struct column attempt_columns[] = {ATTEMPT_STORE_COLUMNS(COLUMN_ROW)};

/* ---- gathering ---- */

static void shown_done(struct shown *s)
{
    task_done(&s->task);
    attempt_store_free(s->attempts, s->attempt_count);
    free(s->pause_text);
    free(s->handler);
    free(s->cancelled_by);
    free(s->cancelled_with);
}

/* The first act by which it was cancelled. */
static int load_cancel(struct cmd_context *c, struct shown *s, struct err *err)
{
    struct event_row *rows = NULL;
    size_t count = 0, i = 0;
    int rc = event_store_list_of(c->db, s->task.id, s->task.finish_at, &rows, &count, err);

    while (i < count && strcmp(rows[i].event, "cancel") != 0)
        i++;
    if (i < count) {
        s->cancelled_by = mem_strdup(rows[i].who);
        s->cancelled_with = mem_printf(rows[i].by_procedure ? "%s" : "dq cancel %s",
                                       rows[i].detail ? rows[i].detail : "");
    }
    event_store_free(rows, count);
    return rc;
}

/* Whether an operator holds its tag back. */
static int load_pause(struct cmd_context *c, struct shown *s, struct err *err)
{
    LOCAL_BY(limit_store_tag_done) struct tag_info p = {0};
    int rc = limit_store_tag(c->db, s->task.tag, &p, err);

    s->paused_until_at = p.paused_until_at;
    if (p.paused_until_at != TASK_TIME_NONE) {
        struct buf b = BUF_INIT;
        bool other = strcmp(p.tag, s->task.tag) != 0;
        buf_printf(&b, "%s paused until ", other ? p.tag : "tag");
        if (p.paused_until_at == INT64_MAX)
            buf_str(&b, "resumed");
        else
            cell_put_time(&b, &c->style.cell, p.paused_until_at, false);
        buf_printf(&b, " by %s%s%s", p.paused_by ? p.paused_by : "?", p.pause_reason ? ": " : "",
                   p.pause_reason ? p.pause_reason : "");
        s->pause_text = buf_take(&b);
    }
    return rc;
}

/* The output of an attempt that was cancelled or taken back is in its own row alone. Rows of
 * attempts that came before the last one say nothing about that. */
static void take_last_output(struct shown *s)
{
    struct task *t = &s->task;
    const struct task_attempt *last = s->attempt_count ? &s->attempts[s->attempt_count - 1] : NULL;
    if (!last || t->output || !last->output || last->start_at < t->execution_at)
        return;
    t->output = mem_dup(last->output, last->output_size);
    t->output_size = last->output_size;
}

static int shown_load(struct cmd_context *c, const struct fleet *fleet, uint64_t id,
                      struct shown *s, struct err *err)
{
    int rc = task_get(c->db, id, &s->task, err);
    if (rc == 0)
        rc = attempt_store_list(c->db, id, &s->attempts, &s->attempt_count, err);
    if (rc < 0)
        return rc;
    take_last_output(s);
    if (s->task.status == TASK_CANCELLED)
        return load_cancel(c, s, err);
    if (s->task.status != TASK_PENDING)
        return 0;
    const struct handler_row *h;
    s->serves = fleet_serves(fleet, s->task.tag, &h);
    s->handler = h ? mem_strdup(h->pattern) : NULL;
    return load_pause(c, s, err);
}

/* ---- printing ---- */

/* One JSON object. A pending task also says what may hold it back. */
static void put_json(struct cmd_context *c, const struct shown *s, struct buf *b)
{
    struct cell until = {.kind = CELL_NULL};
    const struct cell_style *style = &c->style.cell;
    buf_chr(b, '{');
    out_put_members(b, style, task_columns, task_column_count + 2, &s->task, NULL);
    if (s->task.status == TASK_PENDING) {
        cell_put_json_text(b, style, "handler", s->handler);
        if (s->paused_until_at != INT64_MAX)
            cell_set_time(&until, s->paused_until_at);
        buf_printf(b, ",\"paused\":%s", s->paused_until_at != TASK_TIME_NONE ? "true" : "false");
        cell_put_json(b, style, "paused_until", &until);
    }
    if (s->task.status == TASK_CANCELLED) {
        cell_put_json_text(b, style, "cancelled_by", s->cancelled_by);
        cell_put_json_text(b, style, "cancelled_with", s->cancelled_with);
    }
    out_put_array(b, style, "attempts", OUT_OF(attempt_columns), s->attempts, sizeof *s->attempts,
                  s->attempt_count);
    buf_chr(b, '}');
}

/* Text of unknown origin, each line escaped and indented. */
static void put_block(const char *title, const char *p, size_t len, bool full)
{
    struct buf b = BUF_INIT;
    size_t shown = full || len <= SHOWN_BYTES ? len : SHOWN_BYTES;
    buf_printf(&b, "%s (%zu byte%s)%s\n", title, len, len == 1 ? "" : "s", len == 0 ? "" : ":");
    for (size_t i = 0; i < shown;) {
        const char *end = memchr(p + i, '\n', shown - i);
        size_t size = end ? (size_t)(end - p) - i : shown - i;
        buf_str(&b, "  ");
        text_escape(&b, p + i, size, 0);
        buf_chr(&b, '\n');
        i += size + 1;
    }
    if (shown < len)
        buf_printf(&b, "  ... %zu more bytes; --full prints all\n", len - shown);
    out_take(&b);
}

static void put_line(const char *prefix, const char *text)
{
    struct buf b = BUF_INIT;
    buf_str(&b, prefix);
    text_escape(&b, text, strlen(text), 0);
    buf_chr(&b, '\n');
    out_take(&b);
}

static void put_attempts(struct cmd_context *c, const struct shown *s, bool full)
{
    const struct out_table table = {attempt_columns, MEM_COUNT(attempt_columns) - 1, NULL, NULL,
                                    NULL};
    char title[64];
    put_line("", "attempts:");
    out_all(&c->style, &table, NULL, s->attempts, sizeof *s->attempts, s->attempt_count);
    for (size_t i = 0; full && i < s->attempt_count; i++) {
        const struct task_attempt *a = &s->attempts[i];
        snprintf(title, sizeof title, "output of attempt %" PRIu32, a->attempt);
        if (a->output_size > 0)
            put_block(title, a->output, a->output_size, full);
    }
}

/* Without an act it was an application, as long as acts of that time are kept. */
static void put_cancelled(const struct cmd_context *c, const struct shown *s)
{
    int64_t kept_ms = c->conf->retention.events_ms;
    if (s->cancelled_by) {
        MEM_LOCAL char *text = mem_printf("by %s: %s", s->cancelled_by, s->cancelled_with);
        put_line("cancelled     ", text);
    } else if (s->task.status == TASK_CANCELLED &&
               !task_has_expired(TASK_CANCELLED, s->task.error) &&
               (kept_ms == 0 || s->task.finish_at > c->style.cell.now_at - kept_ms)) {
        put_line("cancelled     ", "by an application");
    }
}

static void put_table(struct cmd_context *c, const struct shown *s, bool full)
{
    const struct task *t = &s->task;
    out_record(&c->style, task_columns, task_column_count - 1, t);
    if (t->status == TASK_PENDING && s->serves == FLEET_SERVES_NOT)
        put_line("waits         ", "no dqd serves its tag; it stays pending until one does");
    if (s->pause_text)
        put_line("waits         ", s->pause_text);
    put_cancelled(c, s);
    put_block("body", t->body, t->body_size, full);
    if (t->again_body)
        put_block("body when it runs again", t->again_body, t->again_size, full);
    if (t->output_size > 0)
        put_block("output of the last attempt", t->output, t->output_size, full);
    if (s->attempt_count > 0)
        put_attempts(c, s, full);
}

static void show_one(struct cmd_context *c, const struct shown *s, size_t index, bool full)
{
    struct buf b = BUF_INIT;
    switch (c->style.format) {
    case OUT_TABLE:
        if (index > 0)
            put_line("", "");
        put_table(c, s, full);
        break;
    case OUT_TSV:
        c->style.no_header = index > 0;
        out_record(&c->style, task_columns, task_column_count, &s->task);
        break;
    case OUT_JSON:
        if (c->operand_count > 1)
            buf_str(&b, index ? ",\n " : "[");
        put_json(c, s, &b);
        break;
    case OUT_NDJSON:
        put_json(c, s, &b);
        buf_chr(&b, '\n');
        break;
    default:
        buf_printf(&b, "%" PRIu64 "\n", s->task.id);
    }
    out_take(&b);
}

static int run(struct cmd_context *c, struct err *err)
{
    const struct show_values *v = c->values;
    MEM_LOCAL uint64_t *ids = NULL;
    size_t count = 0, shown = 0;
    LOCAL_BY(fleet_done) struct fleet fleet = {.dqds = NULL};
    struct err denied = {0};
    bool pending = false;
    int rc = select_ids(c, v->key, v->tag, false, &ids, &count, err);
    if (rc == 0)
        rc = cmd_now(c, &c->style.cell.now_at, err);
    if (rc == 0 && fleet_load(c->db, &fleet, &denied) < 0)
        cmd_note(c, "the handlers are not known: %s", denied.text);
    for (size_t i = 0; rc == 0 && i < count && !out_failed(); i++) {
        struct shown s = {.paused_until_at = TASK_TIME_NONE};
        task_init(&s.task);
        rc = shown_load(c, &fleet, ids[i], &s, err);
        pending |= s.task.status == TASK_PENDING;
        if (rc == 0)
            show_one(c, &s, shown++, v->full);
        shown_done(&s);
        if (rc == ERR_NOT_FOUND && count > 1) {
            cmd_complain(c, "%s", err->text);
            rc = 0;
        }
    }
    if (rc == 0 && c->style.format == OUT_JSON)
        out_printf("%s\n", count == 1 ? "" : shown ? "]" : "[]");
    if (rc == 0 && pending && !denied.code && (rc = out_flush(err)) == 0)
        fleet_say_dqds(c, &fleet);
    return rc;
}

static const struct cmd_option options[] = {
    SELECT_KEY(offsetof(struct show_values, key)),
    SELECT_TAG(offsetof(struct show_values, tag)),
    {"full", 0, CMD_FLAG, offsetof(struct show_values, full), NULL, NULL, 0},
};

const struct cmd cmd_show = {
    .name = "show",
    CMD_OPTIONS(options, show_values),
    .min_operands = 1,
    .max_operands = -1,
    .instead = "key",
    .pages = true,
    .run = run,
};
