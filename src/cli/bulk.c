/*
 * bulk.c - a file of tasks into the database, chunk by chunk.
 *
 * Invariant: a chunk is added whole or not at all, and an error says exactly how many lines are in, so that the next call can go
 * on from there. Memory holds one chunk.
 */
#include "cli/bulk.h"

#include "base/mem.h"
#include "base/when.h"
#include "cli/infile.h"
#include "cli/progress.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CHUNK_LINES 1000
#define CHUNK_BYTES (1u << 20)
#define TRANSIENT_TRIES 5

struct bulk {
    struct cmd_context *c;
    const struct bulk_options *options;
    struct infile lines;
    struct bulk_parser parser;
    bool begun; /* the first line that is not blank was seen: the parser is set up */
    struct progress progress;
    struct buf arena; /* the texts of the chunk */
    struct bulk_item *items;
    struct task_new *tasks;
    size_t count;
    uint64_t done_line; /* every line up to this one is in the database */
    uint64_t added, kept;
};

static volatile sig_atomic_t interrupted;

static void interrupt(int signal_number __attribute__((unused)))
{
    interrupted = 1;
}

/* The first SIGINT or SIGTERM ends at the next line, with word of how far it got; a second one ends at once. */
static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = interrupt, .sa_flags = SA_RESTART | (int)SA_RESETHAND};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* By the name's end, else by the first byte that is not blank. */
static int guess_format(struct bulk *b, const char *line, size_t len, enum bulk_format *ret, struct err *err)
{
    static const struct {
        const char *end;
        enum bulk_format format;
    } endings[] = {
        {".ndjson", BULK_NDJSON}, {".jsonl", BULK_NDJSON}, {".json", BULK_NDJSON}, {".tsv", BULK_TSV}, {".tab", BULK_TSV}};
    const char *name = b->options->from;
    size_t blank = 0;
    while (blank < len && (line[blank] == ' ' || line[blank] == '\t'))
        blank++;
    if (blank < len && line[blank] == '[' && b->options->format != BULK_TSV)
        return err_set(err, ERR_DATA, "this is a JSON array; one object a line is wanted (jq -c '.[]' makes it so)");
    *ret = blank < len && line[blank] == '{' ? BULK_NDJSON : BULK_TSV;
    for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
        size_t size = strlen(endings[i].end);
        if (strlen(name) > size && strcmp(name + strlen(name) - size, endings[i].end) == 0)
            *ret = endings[i].format;
    }
    if (b->options->format >= 0)
        *ret = (enum bulk_format)b->options->format;
    return 0;
}

static int add_chunk(struct bulk *b, size_t *ret_bad, struct err *err)
{
    size_t kept = 0;
    int rc = 0;
    for (int try = 1; try <= TRANSIENT_TRIES; try++) { /* a deadlock was rolled back whole: once more */
        rc = task_store_add_many(b->c->db, b->tasks, b->count, b->options->on_conflict, &kept, ret_bad, err);
        if (rc != ERR_TRANSIENT)
            break;
        nanosleep(&(struct timespec){.tv_nsec = 20000000L * try}, NULL);
    }
    if (rc < 0)
        return rc;
    b->kept += kept;
    b->added += b->count - kept;
    return 0;
}

/* Adds what has been collected. */
static int flush_chunk(struct bulk *b, struct err *err)
{
    size_t bad = SIZE_MAX;
    for (size_t i = 0; i < b->count; i++) {
        const struct bulk_item *item = &b->items[i];
        b->tasks[i] = item->task;
        b->tasks[i].tag = b->arena.data + item->tag;
        b->tasks[i].key = item->has_key ? b->arena.data + item->key : NULL;
        b->tasks[i].body = b->arena.data + item->body;
    }
    if (b->options->dry_run)
        b->added += b->count;
    int rc = b->count == 0 || b->options->dry_run ? 0 : add_chunk(b, &bad, err);
    if (rc < 0 && bad < b->count)
        return err_prefix(err, "%s:%" PRIu64, b->lines.name, b->items[bad].line);
    if (rc < 0)
        return err_prefix(err, "%s: lines %" PRIu64 " to %" PRIu64, b->lines.name, b->done_line + 1, b->lines.number);
    b->done_line = b->lines.number;
    b->count = 0;
    buf_reset(&b->arena);
    uint64_t size = b->lines.size;
    progress_show(&b->progress, b->lines.number, size ? (double)b->lines.bytes / (double)size : -1);
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

static int take_line(struct bulk *b, const char *line, size_t len, struct err *err)
{
    if (len > 0 && line[len - 1] == '\r')
        len--;
    if (is_blank(line, len))
        return 0;
    int rc = 0;
    if (!b->begun) {
        enum bulk_format format = BULK_NDJSON;
        b->begun = true;
        rc = guess_format(b, line, len, &format, err);
        if (rc == 0) {
            bulk_parser_init(&b->parser, b->c, format);
            rc = bulk_parse_heading(&b->parser, line, len, err);
        }
        if (rc != 0)
            goto out;
    }
    if (b->lines.number <= b->options->skip)
        return 0;
    struct bulk_item *item = &b->items[b->count];
    rc = bulk_parse_line(&b->parser, line, len, &b->arena, item, err);
    if (rc == 0) {
        item->line = b->lines.number;
        b->count++;
    }
out:
    if (rc < 0)
        return err_prefix(err, "%s:%" PRIu64, b->lines.name, b->lines.number);
    return 0;
}

static int read_all(struct bulk *b, struct err *err)
{
    const char *line;
    size_t len;
    int rc;
    while ((rc = infile_next(&b->lines, &line, &len, err)) > 0) {
        rc = take_line(b, line, len, err);
        if (rc == 0 && (b->count == CHUNK_LINES || b->arena.len >= CHUNK_BYTES))
            rc = flush_chunk(b, err);
        if (rc == 0 && interrupted)
            rc = err_set(err, ERR_TRANSIENT, "%s: interrupted at line %" PRIu64, b->lines.name, b->lines.number);
        if (rc < 0)
            return rc;
    }
    return rc < 0 ? rc : flush_chunk(b, err);
}

/* Puts what was done before the fault, and how to go on, behind its text. */
static int explain_fault(const struct bulk *b, struct err *err)
{
    char text[sizeof(err->text)];
    bool unknown = err->code == ERR_LOST;
    memcpy(text, err->text, sizeof(text));
    if (b->options->dry_run)
        return err->code;
    if (unknown)
        return err_set(err, err->code, "%s; whether these lines are in is not known, the %" PRIu64 " before them are", text,
                       b->done_line);
    if (b->added + b->kept == 0)
        return err_set(err, err->code, "%s; nothing was added", text);
    return err_set(err, err->code, "%s; lines up to %" PRIu64 " are in: go on with --skip %" PRIu64, text, b->done_line,
                   b->done_line);
}

static void report(const struct bulk *b)
{
    struct buf out = BUF_INIT;
    char took[WHEN_TEXT_SIZE];
    int64_t ms = progress_elapsed_ms(&b->progress);
    enum out_format format = b->c->style.format;
    if (format == OUT_JSON || format == OUT_NDJSON)
        buf_printf(&out, "{\"added\":%" PRIu64 ",\"kept\":%" PRIu64 "}\n", b->added, b->kept);
    else if (format == OUT_TSV)
        buf_printf(&out, "added\tkept\n%" PRIu64 "\t%" PRIu64 "\n", b->added, b->kept);
    else if (b->options->dry_run)
        buf_printf(&out, "%" PRIu64 " task%s in order\n", b->added, b->added == 1 ? " is" : "s are");
    else
        buf_printf(&out, "%" PRIu64 " added, %" PRIu64 " kept\n", b->added, b->kept);
    out_write(&out);
    buf_done(&out);
    if (!b->options->dry_run && ms >= 1000) /* a rate made of less says nothing */
        cmd_note(b->c, "took %s, %.0f lines/s", when_format_rough(took, ms), (double)b->lines.number * 1000 / (double)ms);
}

int bulk_run(struct cmd_context *c, const struct bulk_options *o, struct err *err)
{
    struct bulk b = {.c = c, .options = o, .arena = BUF_INIT};
    int rc = infile_open(&b.lines, o->from, err);
    if (rc < 0)
        return rc;
    progress_init(&b.progress, c->quiet, "lines");
    b.items = mem_zero(CHUNK_LINES, sizeof(*b.items));
    b.tasks = mem_zero(CHUNK_LINES, sizeof(*b.tasks));
    b.done_line = o->skip;
    if (o->dry_run)
        c->now_at = when_host_wall(); /* nothing is stored: no database is needed to check a relative time */
    catch_signals();
    rc = read_all(&b, err);
    progress_clear(&b.progress);
    if (rc < 0)
        explain_fault(&b, err);
    else
        report(&b);
    bulk_parser_done(&b.parser);
    infile_done(&b.lines);
    buf_done(&b.arena);
    free(b.items);
    free(b.tasks);
    return rc;
}
