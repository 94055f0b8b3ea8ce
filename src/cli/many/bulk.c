/*
 * bulk.c - a file of tasks into the database, chunk by chunk.
 *
 * While a thread sends one chunk, the next one is read: the server and the parser work at the same
 * time. Memory holds two chunks. Invariant: a chunk is added whole or not at all, chunks are sent
 * in the order of the file, and an error says exactly how many lines are in, so that the next call
 * can go on from there. Only the sender uses the database while it runs.
 */
#include "cli/many/bulk.h"

#include "base/interrupt.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/when.h"
#include "cli/judge/fleet.h"
#include "cli/judge/survey.h"
#include "cli/line/infile.h"
#include "cli/many/act.h"
#include "cli/many/bulk_line.h"
#include "cli/show/progress.h"
#include "store/schema/routines.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <unistd.h>

#define CHUNK_BYTES (1u << 20)
#define TAGS_MOST 1000 /* that are looked up among those that are served */
#define TAGS_NAMED 10  /* that no dqd serves */

struct chunk {
    struct buf arena; /* its texts */
    struct bulk_line *items;
    struct task_new *tasks;
    size_t count;
    uint64_t last_line, bytes; /* of the file, when it was full */
    int64_t in_ms;             /* the first of them is due then */
    size_t kept, bad;          /* what its sending came to */
    size_t sent, end, locked;  /* those before are in; are being sent; the next to go alone */
    struct task_added one;     /* the same of one that goes alone */
    int rc;
    struct err err;
};

struct bulk {
    struct cmd_context *c;
    const struct bulk_values *v;
    enum key_conflict on_conflict;
    uint64_t skip;
    struct infile lines;
    struct bulk_line_parser parser;
    bool begun; /* the first line that is not blank was seen: the parser is set up */
    /* CSV: a record of several lines, as far as it was read; whether it goes on */
    struct buf record;
    bool record_open;
    uint64_t record_line; /* the line at which the current record begins */
    bool counting;        /* the tasks, to spread them: they are only read */
    uint64_t tasks, at;   /* how many there are; the place of the next one among them */
    struct progress progress;
    struct chunk chunks[2];
    struct chunk *filling, *sending; /* the latter NULL: none */
    pthread_t sender;
    uint64_t done_line;     /* every line up to this one is in the database */
    uint64_t unknown_line;  /* not 0: of those behind it, up to this one, nobody knows */
    struct buf unknown_tag; /* of that line, as a word of a shell */
    uint64_t added, kept;
    bool one_by_one;    /* a chunk has one line, whose id is printed */
    bool for_people;    /* note tags that no dqd serves */
    struct survey tags; /* of the lines, at most TAGS_MOST */
    struct fleet fleet; /* loaded when a line needs it */
    struct act act;     /* of replacements */
};

/* By the name's end, else by the first line. */
static int guess_format(struct bulk *b, const char *line, size_t len, enum bulk_line_format *ret,
                        struct err *err)
{
    static const struct {
        const char *end;
        enum bulk_line_format format;
    } endings[] = {{".ndjson", BULK_LINE_NDJSON}, {".jsonl", BULK_LINE_NDJSON},
                   {".json", BULK_LINE_NDJSON},   {".tsv", BULK_LINE_TSV},
                   {".tab", BULK_LINE_TSV},       {".csv", BULK_LINE_CSV}};
    const char *name = b->v->from;
    size_t blank = 0;
    while (blank < len && (line[blank] == ' ' || line[blank] == '\t'))
        blank++;
    if (blank < len && line[blank] == '[' && b->v->format < BULK_LINE_TSV)
        return err_set(err, ERR_DATA,
                       "this is a JSON array; write one object per line (jq -c '.[]' converts it)");
    *ret = blank < len && line[blank] == '{' ? BULK_LINE_NDJSON
           : bulk_line_is_csv(line, len)     ? BULK_LINE_CSV
                                             : BULK_LINE_TSV;
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        size_t size = strlen(endings[i].end);
        if (strlen(name) > size && strcmp(name + strlen(name) - size, endings[i].end) == 0)
            *ret = endings[i].format;
    }
    if (b->v->format >= 0)
        *ret = (enum bulk_line_format)b->v->format;
    return 0;
}

/* Sends all that are left; or, of these, those before the one that another session has locked, then
 * this one alone, then those behind it. */
static int send_some(struct bulk *b, struct chunk *k)
{
    const struct task_new *t = &k->tasks[k->sent];
    enum key_conflict conflict = b->on_conflict;
    size_t kept = 0, bad = SIZE_MAX;
    bool alone = b->one_by_one || k->locked == k->sent;
    int rc;

    k->end = alone ? k->sent + 1 : MIN(k->count, k->locked);
    if (alone)
        rc = task_add(b->c->db, t, conflict, &k->one, &k->err);
    else
        rc = task_add_many(b->c->db, t, k->end - k->sent, conflict, &kept, &bad, &k->err);
    if (rc == ERR_LOCKED && bad != SIZE_MAX) {
        k->locked = k->sent + bad;
        return 0;
    }
    if (rc < 0) {
        k->bad = alone ? k->sent : bad == SIZE_MAX ? bad : k->sent + bad;
        return rc;
    }
    k->kept += alone ? rc == 0 && !k->one.replaced && !k->one.again : kept;
    k->sent = k->end;
    if (alone)
        k->locked = SIZE_MAX;
    return 0;
}

static void *send_chunk(void *arg)
{
    struct bulk *b = arg;
    struct chunk *k = b->sending;
    int tries = 0;

    k->sent = 0;
    k->locked = SIZE_MAX;
    for (k->rc = 0; k->rc == 0 ? k->sent < k->count : cmd_again(k->rc, &tries);)
        k->rc = send_some(b, k);
    if (k->kept < k->sent)
        cmd_wake(b->c, k->in_ms);
    return NULL;
}

static int64_t first_due(const struct chunk *k, int64_t now_at)
{
    int64_t first_ms = INT64_MAX;
    for (size_t i = 0; i < k->count; i++) {
        const struct task_new *t = &k->tasks[i];
        int64_t in_ms = t->expected_at == TASK_TIME_NONE ? t->delay_ms : t->expected_at - now_at;
        first_ms = MIN(in_ms, first_ms);
    }
    return first_ms;
}

/* Waits for the chunk that is being sent, if any. */
static int finish_chunk(struct bulk *b, struct err *err)
{
    struct chunk *k = b->sending;
    if (!k)
        return 0;
    pthread_join(b->sender, NULL);
    b->sending = NULL;
    b->kept += k->kept;
    b->added += k->sent - k->kept;
    if (k->rc < 0) {
        *err = k->err;
        if (k->sent)
            b->done_line = k->items[k->sent].line - 1;
        if (k->rc == ERR_LOST) {
            b->unknown_line = k->items[k->end - 1].line;
            text_shell_word(&b->unknown_tag, k->tasks[k->end - 1].tag);
        }
        if (k->bad < k->count)
            return err_prefix(err, "%s:%" PRIu64, b->lines.name, k->items[k->bad].line);
        return err_prefix(err, "%s: lines %" PRIu64 " to %" PRIu64, b->lines.name, b->done_line + 1,
                          k->last_line);
    }
    b->done_line = k->last_line;
    if (b->one_by_one) { /* a program may wait for it, before it writes the next line */
        out_printf("%" PRIu64 "\n", k->one.id);
        int rc = out_flush(err);
        if (rc < 0)
            return rc;
    }
    progress_show(&b->progress, k->last_line,
                  b->lines.size ? (double)k->bytes / (double)b->lines.size : -1);
    return 0;
}

static void print_chunk(const struct bulk *b, const struct chunk *k)
{
    struct buf sql = BUF_INIT;

    for (size_t i = 0; i < k->count; i++)
        routines_put_call(&sql, &k->tasks[i], b->on_conflict);
    out_take(&sql);
}

/* The place of a task within --over. */
static void spread(struct bulk *b, struct task_new *t)
{
    int64_t later_ms =
        (int64_t)((double)MAX(b->v->over_ms, 0) * (double)b->at++ / (double)MAX(b->tasks, 1));

    if (t->expected_at == TASK_TIME_NONE)
        t->delay_ms += later_ms;
    else
        t->expected_at += later_ms;
}

/* Sends what has been collected, after the chunk before it, and turns to the other one. */
static int flush_chunk(struct bulk *b, struct err *err)
{
    struct chunk *k = b->filling;
    int64_t now_at;
    size_t i;
    int rc = finish_chunk(b, err);
    if (rc < 0)
        return rc;
    for (i = 0; i < k->count; i++) {
        const struct bulk_line *item = &k->items[i];
        k->tasks[i] = item->task;
        k->tasks[i].tag = k->arena.data + item->tag;
        k->tasks[i].key = item->has_key ? k->arena.data + item->key : NULL;
        k->tasks[i].body = k->arena.data + item->body;
        k->tasks[i].act = b->act.actor ? &b->act.event : NULL;
        if (item->task.attempt) /* the sender does not use the database now */
            rc = fleet_set_wait(b->c->db, &b->fleet, item->timed, &k->tasks[i], err);
        if (rc < 0)
            break;
        spread(b, &k->tasks[i]);
        if ((rc = bulk_line_check_expiry(b->c, &k->tasks[i], err)) < 0)
            break;
        if (b->for_people && b->tags.count < TAGS_MOST)
            survey_add(&b->tags, &(struct task){.tag = k->arena.data + item->tag});
    }
    if (rc < 0)
        return err_prefix(err, "%s:%" PRIu64, b->lines.name, k->items[i].line);
    k->last_line = b->lines.number;
    k->bytes = b->lines.bytes;
    k->bad = SIZE_MAX;
    k->kept = 0;
    if (b->v->sql)
        print_chunk(b, k);
    if (k->count == 0 || b->v->dry_run || b->v->sql) {
        b->added += k->count;
        b->done_line = k->last_line;
    } else {
        /* the reader may want to know it while the sender has the database */
        rc = cmd_now(b->c, &now_at, err);
        if (rc < 0)
            return err_prefix(err, "%s: lines %" PRIu64 " to %" PRIu64, b->lines.name,
                              b->done_line + 1, k->last_line);
        k->in_ms = first_due(k, now_at);
        b->sending = k;
        if (pthread_create(&b->sender, NULL, send_chunk, b) != 0) {
            b->sending = NULL;
            return err_set(err, ERR_SYSTEM, "cannot start a thread");
        }
        b->filling = k == &b->chunks[0] ? &b->chunks[1] : &b->chunks[0];
    }
    b->filling->count = 0;
    buf_reset(&b->filling->arena);
    return 0;
}

static bool is_blank(const char *line, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (line[i] != ' ' && line[i] != '\t')
            return false;
    }
    return true;
}

/* Makes *line the whole record that it belongs to. 1, or 0: it goes on behind this line. */
static int take_record(struct bulk *b, const char **line, size_t *len, struct err *err)
{
    bool begun = b->record_open;

    if (!begun)
        b->record_line = b->lines.number;
    b->record_open = b->begun && b->parser.format == BULK_LINE_CSV &&
                     bulk_line_is_open(b->record_open, *line, *len);
    if (!begun && !b->record_open)
        return 1;
    if (begun)
        buf_chr(&b->record, '\n');
    else
        buf_reset(&b->record);
    buf_add(&b->record, *line, *len);
    if (b->record.len > INFILE_LINE_MAX)
        return err_set(err, ERR_DATA, "the record is longer than 64 MiB: are quotes not closed?");
    *line = b->record.data;
    *len = b->record.len;
    return !b->record_open;
}

/* Sets the parser up by the first line. 1: it is a heading, 0, or an error. */
static int begin(struct bulk *b, const char *line, size_t len, struct err *err)
{
    enum bulk_line_format format = BULK_LINE_NDJSON;

    b->begun = true;
    int rc = guess_format(b, line, len, &format, err);
    if (rc < 0)
        return rc;
    bulk_line_init(&b->parser, b->c, format);
    return bulk_line_heading(&b->parser, line, len, err);
}

static int take_item(struct bulk *b, const char *line, size_t len, struct err *err)
{
    if (len > 0 && line[len - 1] == '\r')
        len--;
    if (is_blank(line, len))
        return 0;
    int rc = b->begun ? 0 : begin(b, line, len, err);
    if (rc != 0 || b->lines.number <= b->skip)
        return rc;
    if (b->counting) {
        b->tasks++;
        return 0;
    }
    struct bulk_line *item = &b->filling->items[b->filling->count];
    rc = bulk_line_parse(&b->parser, line, len, &b->filling->arena, item, err);
    if (rc == 0) {
        item->line = b->record_line;
        b->filling->count++;
    }
    return rc;
}

static int take_line(struct bulk *b, const char *line, size_t len, struct err *err)
{
    int rc = take_record(b, &line, &len, err);
    if (rc == 1)
        rc = take_item(b, line, len, err);
    if (rc < 0)
        return err_prefix(err, "%s:%" PRIu64, b->lines.name, b->record_line);
    return 0;
}

static int read_lines(struct bulk *b, struct err *err)
{
    const char *line;
    size_t len;
    int rc;
    while ((rc = infile_next(&b->lines, &line, &len, err)) > 0) {
        rc = take_line(b, line, len, err);
        if (rc == 0 && b->filling->count &&
            (b->one_by_one || b->filling->count == TASK_CHUNK_ROWS ||
             b->filling->arena.len >= CHUNK_BYTES))
            rc = flush_chunk(b, err);
        if (rc == 0 && b->one_by_one)
            rc = finish_chunk(b, err);
        if (rc < 0)
            return rc;
    }
    if (rc == 0 && b->record_open)
        rc = err_set(err, ERR_DATA, "%s:%" PRIu64 ": the quotes of a field are not closed",
                     b->lines.name, b->record_line);
    return rc < 0 ? rc : flush_chunk(b, err);
}

static int count_tasks(struct bulk *b, struct err *err)
{
    const char *line;
    size_t len;
    int rc = infile_keep(&b->lines, err);

    b->counting = true;
    while (rc == 0 && (rc = infile_next(&b->lines, &line, &len, err)) > 0)
        rc = take_line(b, line, len, err);
    bulk_line_done(&b->parser);
    b->counting = b->begun = b->record_open = false;
    return rc < 0 ? rc : infile_rewind(&b->lines, err);
}

/* A fault of the lines that were being sent comes before one of those behind them. */
static int read_all(struct bulk *b, struct err *err)
{
    struct err earlier;
    int rc = b->v->over_ms > 0 ? count_tasks(b, err) : 0;
    rc = rc < 0 ? rc : read_lines(b, err);
    int sent = finish_chunk(b, &earlier);
    if (sent < 0)
        *err = earlier;
    return sent < 0 ? sent : rc;
}

/* Puts what was done before the fault, and how to go on, behind its text. */
static int explain_fault(const struct bulk *b, struct err *err)
{
    if (b->v->dry_run)
        return err->code;
    if (b->v->sql)
        return err_set(err, err->code, "%s; the statements of lines up to %" PRIu64 " are printed",
                       err->text, b->done_line);
    if (b->unknown_line)
        return err_set(
            err, err->code,
            "%s; run: dq list -t %s -s all --sort -id -n 1 -c id,created,key,body; if it"
            " shows line %" PRIu64 ", continue with --skip %" PRIu64 ", else with --skip %" PRIu64,
            err->text, b->unknown_tag.data, b->unknown_line, b->unknown_line, b->done_line);
    if (b->added + b->kept == 0)
        return err_set(err, err->code, "%s; nothing was added", err->text);
    return err_set(err, err->code,
                   "%s; lines up to %" PRIu64 " are in: continue with --skip %" PRIu64, err->text,
                   b->done_line, b->done_line);
}

static void report(const struct bulk *b)
{
    char took[WHEN_TEXT_SIZE];
    int64_t ms = progress_elapsed_ms(&b->progress);
    enum out_format format = b->c->style.format;
    if (format == OUT_JSON || format == OUT_NDJSON)
        out_printf("{\"added\":%" PRIu64 ",\"kept\":%" PRIu64 "}\n", b->added, b->kept);
    else if (format == OUT_TSV)
        out_printf("added\tkept\n%" PRIu64 "\t%" PRIu64 "\n", b->added, b->kept);
    else if (b->v->dry_run)
        out_printf("%" PRIu64 " task%s valid\n", b->added, b->added == 1 ? " is" : "s are");
    else
        out_printf("%" PRIu64 " added, %" PRIu64 " kept\n", b->added, b->kept);
    if (b->v->over_ms > 0)
        cmd_note(b->c, "spread evenly over %s", when_format_duration(took, b->v->over_ms));
    if (!b->v->dry_run && ms >= 1000) /* a rate made of less says nothing */
        cmd_note(b->c, "took %s, %.0f lines/s", when_format_rough(took, ms),
                 (double)b->lines.number * 1000 / (double)ms);
}

/* Best effort: an account that may not read the tables of dqds gets no note. */
static void note_tags(const struct bulk *b)
{
    LOCAL_BY(fleet_done) struct fleet f = {0};
    struct err err;
    size_t unserved = 0;

    if (fleet_load(b->c->db, &f, &err) == 0) {
        fleet_say_dqds(b->c, &f);
        for (size_t i = 0; i < b->tags.count; i++)
            if (fleet_serves(&f, b->tags.tags[i].tag, NULL) == FLEET_SERVES_NOT &&
                unserved++ < TAGS_NAMED)
                fleet_say_tag(b->c, &f, b->tags.tags[i].tag);
    }
    if (unserved > TAGS_NAMED)
        cmd_note(b->c, "no dqd serves %zu more tags", unserved - TAGS_NAMED);
}

enum key_conflict bulk_conflict(const struct bulk_values *v)
{
    return v->debounce           ? KEY_DEBOUNCE
           : v->on_conflict >= 0 ? (enum key_conflict)v->on_conflict
                                 : KEY_KEEP;
}

int bulk_run(struct cmd_context *c, const struct bulk_values *v, struct err *err)
{
    struct bulk b = {.c = c,
                     .v = v,
                     .on_conflict = bulk_conflict(v),
                     .skip = (uint64_t)MAX(v->skip, 0),
                     .done_line = (uint64_t)MAX(v->skip, 0),
                     .record = BUF_INIT,
                     .unknown_tag = BUF_INIT,
                     .chunks = {{.arena = BUF_INIT}, {.arena = BUF_INIT}}};
    int rc = infile_open(&b.lines, v->from, INFILE_LINE_MAX, err);
    if (rc < 0)
        return rc;
    progress_init(&b.progress, c->quiet, "lines");
    b.for_people = !v->dry_run && !v->sql && !c->quiet && (c->verbose || isatty(STDERR_FILENO));
    for (int i = 0; i < 2; i++) {
        b.chunks[i].items = mem_zero(TASK_CHUNK_ROWS, sizeof *b.chunks[i].items);
        b.chunks[i].tasks = mem_zero(TASK_CHUNK_ROWS, sizeof *b.chunks[i].tasks);
    }
    b.filling = &b.chunks[0];
    b.one_by_one = c->output == OUT_ID && !v->dry_run;
    if (v->dry_run)
        /* nothing is stored: no database is needed to check a relative time */
        c->now_at = when_host_wall();
    if (b.on_conflict >= KEY_REPLACE && !v->dry_run && !v->sql) {
        b.act = act_of(c, NULL, NULL);
        b.act.event.verb = b.on_conflict == KEY_REPLACE ? "replace" : "again";
    }
    interrupt_catch();
    rc = read_all(&b, err);
    progress_clear(&b.progress);
    if (rc < 0)
        explain_fault(&b, err);
    else if (!v->sql && !b.one_by_one)
        report(&b);
    if (rc == 0 && b.for_people)
        note_tags(&b);
    bulk_line_done(&b.parser);
    infile_done(&b.lines);
    buf_done(&b.record);
    buf_done(&b.unknown_tag);
    survey_done(&b.tags);
    fleet_done(&b.fleet);
    act_done(&b.act);
    for (int i = 0; i < 2; i++) {
        buf_done(&b.chunks[i].arena);
        free(b.chunks[i].items);
        free(b.chunks[i].tasks);
    }
    return rc;
}
