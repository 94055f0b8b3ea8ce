/*
 * cmd_import.c - dq import: what dq export wrote becomes tasks again.
 *
 * Invariant: a chunk, which ends with the attempts of its last task, is stored whole or not at all,
 * and an error says which lines are in. With --complete, nothing of a file is stored before its end
 * was seen, and of what cannot be read twice the last chunk is not.
 */
#include "cli/line/infile.h"
#include "cli/line/verbs.h"
#include "cli/many/act.h"
#include "cli/many/transfer.h"
#include "cli/show/progress.h"

#include "base/interrupt.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/param.h>

#define CHUNK_TASKS 500
#define LINE_MOST ((uint64_t)8 << 30)
#define CHUNK_BYTES ((uint64_t)1 << 20)
/* Programs that read JSON round greater numbers; the tasks added later get greater ids yet. */
#define KEPT_ID_MOST ((UINT64_C(1) << 53) - 1)

struct import_values {
    bool keep_ids, dry_run, complete;
    int64_t skip;
};

struct import {
    struct cmd_context *c;
    const struct import_values *v;
    struct infile file;
    struct json_reader *json;
    struct import_item *items; /* the chunk */
    size_t count;
    uint64_t begun_bytes;          /* of the file, when the chunk was begun */
    uint64_t done_line;            /* every line up to this one is stored */
    bool unsure;                   /* whether the chunk behind it is, too */
    struct transfer_end seen;      /* lines since the last end of an export */
    bool ended;                    /* the last line was one */
    struct err missing;            /* what shows that lines are missing; code 0: nothing so far */
    uint64_t tasks, attempts, due; /* stored; due: pending ones that are due now */
    int64_t now_at;
    struct act act;
    struct progress progress;
};

static bool is_due(const struct import *m, const struct task *t)
{
    return t->status == TASK_PENDING && t->expected_at <= m->now_at;
}

/* last_line: of the chunk. */
static int flush(struct import *m, uint64_t last_line, struct err *err)
{
    size_t bad = SIZE_MAX;
    uint64_t due = 0;
    int rc, tries = 0;

    if (m->count == 0)
        return 0;
    do /* it reads only */
        rc = import_store_check(m->c->db, m->items, m->count, m->v->keep_ids, &bad, err);
    while (cmd_again(rc == ERR_LOST ? ERR_TRANSIENT : rc, &tries));
    if (rc == ERR_DUPLICATE)
        return err_prefix(err, "%s:%" PRIu64, m->file.name, m->items[bad].line);
    if (rc == 0 && !m->v->dry_run)
        do {
            rc = import_store_add(m->c->db, m->items, m->count, m->v->keep_ids, &m->act.event, err);
            m->unsure = rc == ERR_LOST;
        } while (cmd_again(rc, &tries));
    if (rc < 0)
        return err_prefix(err, "%s: lines %" PRIu64 " to %" PRIu64, m->file.name, m->done_line + 1,
                          last_line);
    for (size_t i = 0; i < m->count; i++) {
        m->attempts += m->items[i].attempt_count;
        due += is_due(m, &m->items[i].task);
    }
    m->tasks += m->count;
    m->due += due;
    m->done_line = last_line;
    if (due && !m->v->dry_run)
        cmd_wake(m->c, 0);
    import_store_free(m->items, m->count);
    m->count = 0;
    m->begun_bytes = m->file.bytes;
    progress_show(&m->progress, m->tasks,
                  m->file.size ? (double)m->file.bytes / (double)m->file.size : -1);
    return 0;
}

/* ---- whether lines are missing */

/* The first sign of it: an error, or to be noted at the end. */
static int say_missing(struct import *m, const struct err *why, struct err *err)
{
    if (!m->missing.code)
        m->missing = *why;
    if (m->v->complete)
        *err = *why;
    return m->v->complete ? why->code : 0;
}

/* Exports may stand one behind the other. */
static int take_end(struct import *m, const char *line, size_t len, struct err *err)
{
    const struct transfer_end seen = m->seen;
    struct transfer_end end;
    struct err why;

    int rc = transfer_read_end(m->json, line, len, &end, err);
    if (rc < 0)
        return err_prefix(err, "%s:%" PRIu64, m->file.name, m->file.number);
    m->seen = (struct transfer_end){0, 0};
    m->ended = true;
    if (end.tasks == seen.tasks && end.attempts == seen.attempts)
        return 0;
    err_set(&why, ERR_DATA,
            "%s:%" PRIu64 ": the export that ends here had %" PRIu64 " tasks and %" PRIu64
            " attempts, the file has %" PRIu64 " and %" PRIu64,
            m->file.name, m->file.number, end.tasks, end.attempts, seen.tasks, seen.attempts);
    return say_missing(m, &why, err);
}

static int count_line(struct import *m, const char *line, size_t len, struct err *err)
{
    m->ended = false;
    if (transfer_is_begin(line, len))
        return 0;
    if (transfer_is_end(line, len))
        return take_end(m, line, len, err);
    if (transfer_is_attempt(line, len))
        m->seen.attempts++;
    else
        m->seen.tasks++;
    return 0;
}

static int check_end(struct import *m, struct err *err)
{
    struct err why;

    if (m->ended)
        return 0;
    err_set(&why, ERR_DATA,
            "%s: the line that ends an export is missing: the file may have been cut off",
            m->file.name);
    return say_missing(m, &why, err);
}

/* ---- lines */

/* The next one that is not empty: 1, or 0 at the end. */
static int next_line(struct import *m, const char **ret_line, size_t *ret_len, struct err *err)
{
    int rc;

    do {
        rc = infile_next(&m->file, ret_line, ret_len, err);
        if (rc > 0 && *ret_len && (*ret_line)[*ret_len - 1] == '\r')
            (*ret_len)--;
    } while (rc > 0 && !*ret_len);
    return rc;
}

/* Looks for the end of a file before anything is stored. */
static int find_end(struct import *m, struct err *err)
{
    const char *line;
    size_t len;
    int rc;

    while ((rc = next_line(m, &line, &len, err)) > 0 && (rc = count_line(m, line, len, err)) == 0)
        ;
    if (rc == 0)
        rc = check_end(m, err);
    m->seen = (struct transfer_end){0, 0};
    return rc < 0 ? rc : infile_rewind(&m->file, err);
}

/* item: the last one of count. */
static int check_attempt(const struct import_item *item, size_t count, const struct task_attempt *a,
                         struct err *err)
{
    if (count == 0 || item->task.id != a->task_id)
        return err_set(err, ERR_DATA, "an attempt of task %" PRIu64 ", which is not before it",
                       a->task_id);
    if (item->attempt_count && item->attempts[item->attempt_count - 1].version >= a->version)
        return err_set(err, ERR_DATA,
                       "an attempt of task %" PRIu64 " with version %" PRIu64
                       ", behind one with version %" PRIu64,
                       a->task_id, a->version, item->attempts[item->attempt_count - 1].version);
    return 0;
}

static int take_attempt(struct import *m, const char *line, size_t len, struct err *err)
{
    struct import_item *item = &m->items[m->count ? m->count - 1 : 0];
    struct task_attempt a;

    int rc = transfer_read_attempt(m->json, line, len, &a, err);
    if (rc < 0)
        return rc;
    rc = check_attempt(item, m->count, &a, err);
    if (rc < 0) {
        attempt_store_free(mem_dup(&a, sizeof a), 1);
        return rc;
    }
    MEM_ROOM(item->attempts, item->attempt_count, item->attempt_cap);
    item->attempts[item->attempt_count++] = a;
    return 0;
}

static int take_task(struct import *m, const char *line, size_t len, struct err *err)
{
    struct import_item *item = &m->items[m->count];

    *item = (struct import_item){.line = m->file.number};
    m->count++; /* freed with the chunk, also if it is invalid */
    int rc = transfer_read_task(m->json, line, len, &item->task, err);
    if (rc == 0 && m->v->keep_ids && item->task.id > KEPT_ID_MOST)
        rc = err_set(err, ERR_DATA,
                     "\"id\" %" PRIu64 " cannot be kept: the greatest id is %" PRIu64
                     "; without --keep-ids it gets another one",
                     item->task.id, KEPT_ID_MOST);
    return rc;
}

/* The tasks get new ids, or those that are added later do: none that a destination knows from tasks
 * of the other database, and would take for a repeat. */
static int take_begin(struct import *m, const char *line, size_t len, struct err *err)
{
    uint64_t next_id;
    int tries = 0;
    int rc = transfer_read_begin(m->json, line, len, &next_id, err);

    if (rc == 0 && next_id > KEPT_ID_MOST)
        rc = err_set(err, ERR_DATA, "\"next_id\" %" PRIu64 " is beyond the greatest id, %" PRIu64,
                     next_id, KEPT_ID_MOST);
    if (rc < 0)
        return err_prefix(err, "%s:%" PRIu64, m->file.name, m->file.number);
    if (!m->v->dry_run)
        do /* it may be repeated */
            rc = import_store_raise_ids(m->c->db, next_id, err);
        while (cmd_again(rc == ERR_LOST ? ERR_TRANSIENT : rc, &tries));
    return rc;
}

static int take_line(struct import *m, const char *line, size_t len, struct err *err)
{
    int rc = count_line(m, line, len, err);

    if (rc == 0 && transfer_is_begin(line, len))
        return take_begin(m, line, len, err);
    if (rc < 0 || m->ended || m->file.number <= (uint64_t)MAX(m->v->skip, 0))
        return rc;
    rc = transfer_is_attempt(line, len) ? take_attempt(m, line, len, err)
                                        : take_task(m, line, len, err);
    return rc < 0 ? err_prefix(err, "%s:%" PRIu64, m->file.name, m->file.number) : 0;
}

static bool is_full(const struct import *m)
{
    return m->count == CHUNK_TASKS || m->file.bytes - m->begun_bytes >= CHUNK_BYTES;
}

static int read_lines(struct import *m, struct err *err)
{
    const char *line;
    size_t len;
    int rc;

    while ((rc = next_line(m, &line, &len, err)) > 0) {
        rc = 0;
        if (m->count && is_full(m) && !transfer_is_attempt(line, len))
            rc = flush(m, m->file.number - 1, err);
        if (rc < 0)
            return rc;
        rc = take_line(m, line, len, err);
        if (rc < 0)
            return rc;
    }
    if (rc == 0)
        rc = check_end(m, err);
    return rc < 0 ? rc : flush(m, m->file.number, err);
}

static void explain_fault(const struct import *m, struct err *err)
{
    if (m->v->dry_run || m->unsure)
        return;
    if (m->tasks == 0)
        err_set(err, err->code, "%s; nothing was imported", err->text);
    else
        err_set(err, err->code, "%s; lines up to %" PRIu64 " are in: continue with --skip %" PRIu64,
                err->text, m->done_line, m->done_line);
}

static void report(const struct import *m)
{
    if (m->c->style.format == OUT_TABLE)
        out_printf("%" PRIu64 " task%s and %" PRIu64 " attempt%s %s\n", m->tasks,
                   m->tasks == 1 ? "" : "s", m->attempts, m->attempts == 1 ? "" : "s",
                   m->v->dry_run ? "can be imported" : "imported");
    else
        out_printf("{\"tasks\":%" PRIu64 ",\"attempts\":%" PRIu64 "}\n", m->tasks, m->attempts);
    if (m->due)
        cmd_note(m->c, "%" PRIu64 " of them %s pending and due: dqd runs %s now", m->due,
                 m->due == 1 ? "is" : "are", m->due == 1 ? "it" : "them");
    if (m->missing.code)
        cmd_note(m->c, "%s", m->missing.text);
}

static int run(struct cmd_context *c, struct err *err)
{
    struct import m = {.c = c, .v = c->values};

    size_t packet = 0;

    int rc = cmd_now(c, &m.now_at, err);
    if (rc == 0)
        rc = db_max_packet(c->db, &packet, err);
    if (rc == 0)
        rc = infile_open(&m.file, c->operand_count ? c->operands[0] : "-",
                         MIN((uint64_t)packet * TRANSFER_LINE_PACKETS, LINE_MOST), err);
    if (rc < 0)
        return rc;
    m.done_line = (uint64_t)MAX(m.v->skip, 0);
    m.items = mem_zero(CHUNK_TASKS, sizeof *m.items);
    m.json = json_reader_new();
    m.act = act_of(c, NULL, NULL);
    progress_init(&m.progress, c->quiet, "tasks");
    interrupt_catch();
    if (m.v->complete && m.file.size)
        rc = find_end(&m, err);
    if (rc == 0)
        rc = read_lines(&m, err);
    progress_clear(&m.progress);
    if (rc < 0)
        explain_fault(&m, err);
    else
        report(&m);
    import_store_free(m.items, m.count);
    free(m.items);
    json_reader_free(m.json);
    act_done(&m.act);
    infile_done(&m.file);
    return rc;
}

#define FIELD(name) offsetof(struct import_values, name)
static const struct cmd_option options[] = {
    {"keep-ids", 0, CMD_FLAG, FIELD(keep_ids), NULL, NULL, 0},
    {"complete", 0, CMD_FLAG, FIELD(complete), NULL, NULL, 0},
    {"dry-run", 0, CMD_FLAG, FIELD(dry_run), NULL, NULL, 0},
    {"skip", 0, CMD_COUNT, FIELD(skip), "N", NULL, 0},
};

const struct cmd cmd_import = {
    .name = "import",
    CMD_OPTIONS(options, import_values),
    .max_operands = 1,
    .formats = OUT_BIT(OUT_TABLE) | OUT_BIT(OUT_JSON) | OUT_BIT(OUT_NDJSON),
    .run = run,
};
