/*
 * out.c - rows in six formats.
 *
 * Invariant: whatever data contains, a table holds no control character that is not ours, JSON is
 * well-formed and TSV has one line a row. Only the first OUT_AHEAD rows of a table are kept in
 * memory.
 */
#include "cli/show/out.h"

#include "base/again.h"
#include "base/mem.h"
#include "base/text.h"
#include "cli/show/pager.h"

#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <unistd.h>

const char *const out_format_names[] = {"table", "json", "ndjson",     "tsv",
                                        "id",    "csv",  "prometheus", NULL};

/* The widths to which texts are cut: all of them to the first before any is cut to the second. */
static const size_t cut_least[] = {8, 5};

struct piece { /* one cell of a table that waits for its width */
    size_t offset, len, width;
    enum cell_colour colour;
};

struct out {
    struct out_style style;
    const struct column **columns;
    size_t count, cap, last; /* last: of those that are shown */
    const void *arg;
    struct buf line, text; /* text: the waiting cells */
    struct piece *pieces;
    size_t piece_count, piece_cap;
    size_t *widths;
    bool *dropped;    /* columns for which the terminal is too narrow */
    const char *drop; /* those that may be dropped; NULL: none */
    uint64_t rows;
    bool widths_known;
};

static struct cell get_cell(const struct column *column, const void *row, const void *arg)
{
    struct cell cell = {.kind = CELL_NULL};
    if (column->get)
        column->get(row, arg, &cell);
    else
        cell_set_field(&cell, column, row);
    return cell;
}

/* Numbers and durations are aligned to the right. */
static bool is_right(const struct column *column)
{
    return column->type <= COLUMN_MS;
}

void out_put_members(struct buf *b, const struct cell_style *style, const struct column *table,
                     size_t count, const void *row, const void *arg)
{
    for (size_t i = 0; i < count; i++) {
        struct cell cell = get_cell(&table[i], row, arg);
        cell_put_json(b, style, table[i].name, &cell);
    }
}

void out_put_array(struct buf *b, const struct cell_style *style, const char *name,
                   const struct out_table *t, const void *rows, size_t size, size_t count)
{
    buf_printf(b, ",\"%s\":[", name);
    for (size_t i = 0; i < count; i++) {
        buf_str(b, i ? ",{" : "{");
        out_put_members(b, style, t->columns, t->count, (const char *)rows + i * size, NULL);
        buf_chr(b, '}');
    }
    buf_chr(b, ']');
}

/* ---- tables ---- */

/* At most max columns of a cell, which holds nothing unsafe any more; returns how many. */
static size_t table_put_cut(struct out *o, const struct piece *p, size_t max)
{
    const char *text = o->text.data + p->offset;
    size_t len = 0, used = 1, step;
    uint32_t c;
    while ((step = text_utf8_next(text + len, p->len - len, &c)) > 0 &&
           used + (size_t)text_char_width(c) <= max) {
        used += (size_t)text_char_width(c);
        len += step;
    }
    buf_add(&o->line, text, len);
    buf_str(&o->line, "…");
    return used;
}

static void table_put_line(struct out *o, const struct piece *row)
{
    for (size_t i = 0; i < o->count; i++) {
        const struct piece *p = &row[i];
        size_t fill = o->widths[i] > p->width ? o->widths[i] - p->width : 0;
        bool last = i == o->last;
        bool paint = o->style.colour && p->colour != CELL_PLAIN;
        if (o->dropped[i])
            continue;
        if (is_right(o->columns[i]))
            buf_printf(&o->line, "%*s", (int)fill, "");
        if (paint)
            buf_str(&o->line, cell_colour_code(p->colour));
        if (o->style.width && o->columns[i]->max && p->width > o->widths[i])
            fill = o->widths[i] - table_put_cut(o, p, o->widths[i]);
        else
            buf_add(&o->line, o->text.data + p->offset, p->len);
        if (paint)
            buf_str(&o->line, "\033[0m");
        if (!last)
            buf_printf(&o->line, "%*s  ", is_right(o->columns[i]) ? 0 : (int)fill, "");
    }
    buf_chr(&o->line, '\n');
    out_write(&o->line);
    buf_reset(&o->line);
}

/* The width of the table, without the columns that were left out. A text counts as most columns at
 * most, in the first column as first_most. */
static size_t table_width(const struct out *o, size_t most, size_t first_most)
{
    size_t total = 0;
    for (size_t i = 0; i < o->count; i++) {
        size_t limit = o->columns[i]->max == 0 ? SIZE_MAX : i == 0 ? first_most : most;
        total += o->dropped[i] ? 0 : MIN(o->widths[i], limit) + (total ? 2 : 0);
    }
    return total;
}

/* Leaves columns out until the table fits the terminal, or none is left that may be. One long text
 * takes no column away: it is cut instead, to a width at which it still says something. */
static void table_drop(struct out *o)
{
    size_t width = o->style.width;
    for (const char *s = o->drop; *s && table_width(o, width / 3, width / 2) > width;) {
        size_t len = strcspn(s, ",");
        for (size_t i = 0; i < o->count; i++)
            if (strlen(o->columns[i]->name) == len && memcmp(o->columns[i]->name, s, len) == 0)
                o->dropped[i] = true;
        s += len + (s[len] == ',');
    }
}

/* Narrows the columns that may be cut until the table fits the terminal, the last one first; each
 * keeps `least`. */
static void table_shrink(struct out *o, size_t least)
{
    size_t total = table_width(o, SIZE_MAX, SIZE_MAX);
    for (size_t i = o->count; i-- > 0 && total > o->style.width;) {
        if (o->columns[i]->max == 0 || o->dropped[i] || o->widths[i] <= least)
            continue;
        size_t spare = o->widths[i] - least, excess = total - o->style.width;
        o->widths[i] -= MIN(spare, excess);
        total -= MIN(spare, excess);
    }
}

static void table_find_widths(struct out *o)
{
    for (size_t i = 0; i < o->piece_count; i++) {
        if (o->pieces[i].width >
            o->widths[i % o->count]) /* NOLINT(clang-analyzer-core.DivideZero): there is a column */
            o->widths[i % o->count] = o->pieces[i].width;
    }
    if (o->style.width) {
        table_drop(o);
        for (size_t i = 0; i < sizeof cut_least / sizeof cut_least[0]; i++)
            table_shrink(o, cut_least[i]);
    }
    for (size_t i = 0; i < o->count; i++)
        if (!o->dropped[i])
            o->last = i;
    o->widths_known = true;
}

static void table_put_pending(struct out *o)
{
    if (!o->widths_known)
        table_find_widths(o);
    for (size_t i = 0; i < o->piece_count; i += o->count)
        table_put_line(o, &o->pieces[i]);
    o->piece_count = 0;
    buf_reset(&o->text);
}

static void table_add_piece(struct out *o, size_t offset, enum cell_colour colour)
{
    MEM_ROOM(o->pieces, o->piece_count, o->piece_cap);
    size_t len = o->text.len - offset;
    o->pieces[o->piece_count++] =
        (struct piece){offset, len, text_width(o->text.data + offset, len), colour};
}

static void table_add_header(struct out *o)
{
    for (size_t i = 0; i < o->count; i++) {
        size_t offset = o->text.len;
        for (const char *s = o->columns[i]->name; *s != '\0'; s++) {
            bool per = strncmp(s, "_per_", 5) == 0;
            buf_chr(&o->text, per ? '/' : *s == '_' ? ' ' : (char)toupper((unsigned char)*s));
            s += per ? 4 : 0;
        }
        table_add_piece(o, offset, CELL_PLAIN);
    }
}

static void table_row(struct out *o, const void *row)
{
    for (size_t i = 0; i < o->count; i++) {
        struct cell cell = get_cell(o->columns[i], row, o->arg);
        size_t offset = o->text.len;
        cell_put_plain(&o->text, &o->style.cell, &cell, o->columns[i]->max, false);
        table_add_piece(o, offset, cell_colour(&o->style.cell, &cell));
    }
    if (o->widths_known || o->rows >= OUT_AHEAD)
        table_put_pending(o);
}

/* ---- outputs ---- */

void out_columns_help(const struct out_table *t)
{
    for (size_t i = 0; i < t->count; i++)
        out_printf("%-12s  %s\n", t->columns[i].name, t->columns[i].help);
}

/* NULL: there is none of that name. */
static const struct column *find_column(const struct out_table *t, const char *name, size_t len)
{
    for (size_t i = 0; i < t->count; i++)
        if (strlen(t->columns[i].name) == len && memcmp(t->columns[i].name, name, len) == 0)
            return &t->columns[i];
    return NULL;
}

static int unknown_column(const struct out_table *t, const char *name, size_t len, struct err *err)
{
    MEM_LOCAL const char **words = mem_alloc(t->count * sizeof *words);
    for (size_t i = 0; i < t->count; i++)
        words[i] = t->columns[i].name;
    MEM_LOCAL char *wanted = mem_dup(name, len);
    const char *near = text_nearest(wanted, words, t->count);
    return near ? err_set(err, ERR_USAGE, "there is no column \"%s\": did you mean \"%s\"?", wanted,
                          near)
                : err_set(err, ERR_USAGE, "there is no column \"%s\": see --columns help", wanted);
}

int out_check(const struct out_table *t, struct err *err)
{
    for (const char *name = t->names; name; name = strchr(name, ',') ? strchr(name, ',') + 1 : NULL)
        if (!find_column(t, name, strcspn(name, ",")))
            return unknown_column(t, name, strcspn(name, ","), err);
    return 0;
}

static void add_column(struct out *o, const struct column *column)
{
    MEM_ROOM(o->columns, o->count, o->cap);
    o->columns[o->count++] = column;
}

static void choose_columns(struct out *o, const struct out_table *t)
{
    bool id = o->style.format == OUT_ID;
    const char *names = id                             ? NULL
                        : t->names                     ? t->names
                        : o->style.format == OUT_TABLE ? t->shown
                                                       : NULL;
    for (size_t i = 0; !names && i < (id ? 1 : t->count); i++)
        add_column(o, &t->columns[i]);
    for (; names; names = strchr(names, ',') ? strchr(names, ',') + 1 : NULL)
        add_column(o, find_column(t, names, strcspn(names, ",")));
}

static void out_destroy(struct out *o)
{
    buf_done(&o->line);
    buf_done(&o->text);
    free(o->pieces);
    free(o->widths);
    free(o->dropped);
    free(o->columns);
    free(o);
}

struct out *out_new(const struct out_style *style, const struct out_table *t, const void *arg)
{
    struct out *o = mem_zero(1, sizeof *o);
    o->style = *style;
    o->arg = arg;
    o->drop = t->drop && !t->names ? t->drop : "";
    choose_columns(o, t);
    o->widths = mem_zero(o->count, sizeof *o->widths);
    o->dropped = mem_zero(o->count, sizeof *o->dropped);
    if (style->format == OUT_TABLE && !style->no_header)
        table_add_header(o);
    return o;
}

void out_all(const struct out_style *style, const struct out_table *t, const void *arg,
             const void *rows, size_t size, size_t count)
{
    struct out *o = out_new(style, t, arg);
    for (size_t i = 0; i < count; i++)
        out_row(o, (const char *)rows + i * size);
    out_end(o, 0);
}

static void tsv_put_header(struct out *o)
{
    const char *between = o->style.format == OUT_TSV ? "\t" : ",";
    if ((o->style.format != OUT_TSV && o->style.format != OUT_CSV) || o->style.no_header || o->rows)
        return;
    for (size_t i = 0; i < o->count; i++)
        buf_printf(&o->line, "%s%s", i ? between : "", o->columns[i]->name);
    buf_chr(&o->line, '\n');
}

/* Bytes as they are, as a field of dq add --from; but nothing that acts on a terminal. */
static void csv_put(struct out *o, const struct cell *cell)
{
    BUF_LOCAL struct buf field = BUF_INIT;
    bool text = cell->kind == CELL_TEXT || cell->kind == CELL_BYTES;
    if (text && !o->style.terminal)
        buf_add(&field, cell->text, cell->len);
    else
        cell_put_tsv(&field, &o->style.cell, cell);
    bool quotes = false;
    for (size_t i = 0; i < field.len; i++)
        quotes = quotes || strchr(",\"\r\n ", field.data[i]);
    if (quotes)
        buf_chr(&o->line, '"');
    for (size_t i = 0; i < field.len; i++)
        buf_add(&o->line, field.data[i] == '"' ? "\"\"" : &field.data[i],
                field.data[i] == '"' ? 2 : 1);
    if (quotes)
        buf_chr(&o->line, '"');
}

void out_row(struct out *o, const void *row)
{
    tsv_put_header(o);
    o->rows++;
    if (o->style.format == OUT_TABLE) {
        table_row(o, row);
        return;
    }
    if (o->style.format == OUT_JSON)
        buf_str(&o->line, o->rows == 1 ? "[{" : ",\n {");
    else if (o->style.format == OUT_NDJSON)
        buf_chr(&o->line, '{');
    for (size_t i = 0; i < o->count; i++) {
        struct cell cell = get_cell(o->columns[i], row, o->arg);
        bool tsv = o->style.format == OUT_TSV || o->style.format == OUT_ID;
        if (i > 0 && (tsv || o->style.format == OUT_CSV))
            buf_chr(&o->line, tsv ? '\t' : ',');
        if (tsv)
            cell_put_tsv(&o->line, &o->style.cell, &cell);
        else if (o->style.format == OUT_CSV)
            csv_put(o, &cell);
        else
            cell_put_json(&o->line, &o->style.cell, o->columns[i]->name, &cell);
    }
    buf_str(&o->line, o->style.format == OUT_JSON     ? "}"
                      : o->style.format == OUT_NDJSON ? "}\n"
                                                      : "\n");
    out_write(&o->line);
    buf_reset(&o->line);
}

int out_end(struct out *o, int rc)
{
    if (!o)
        return rc;
    bool complete = rc >= 0;
    if (complete)
        tsv_put_header(o);
    if (o->style.format == OUT_TABLE && (complete || o->rows))
        table_put_pending(o);
    if (o->style.format == OUT_JSON && complete)
        buf_str(&o->line, o->rows == 0 ? "[]\n" : "]\n");
    else if (o->style.format == OUT_JSON && o->rows)
        buf_chr(&o->line, '\n');
    out_write(&o->line);
    out_destroy(o);
    return rc;
}

void out_record(const struct out_style *style, const struct column *table, size_t count,
                const void *row)
{
    const struct out_table t = {table, count, NULL, NULL, NULL};
    if (style->format == OUT_JSON || style->format == OUT_NDJSON) {
        struct buf b = BUF_INIT;
        buf_chr(&b, '{');
        out_put_members(&b, &style->cell, table, count, row, NULL);
        buf_str(&b, "}\n");
        out_take(&b);
        return;
    }
    if (style->format != OUT_TABLE) {
        out_all(style, &t, NULL, row, 0, 1);
        return;
    }
    struct out *o = out_new(style, &t, NULL);
    size_t width = 0;
    for (size_t i = 0; i < o->count; i++)
        width = MAX(width, strlen(o->columns[i]->name));
    for (size_t i = 0; i < o->count; i++) {
        struct cell cell = get_cell(o->columns[i], row, NULL);
        enum cell_colour colour = cell_colour(&style->cell, &cell);
        bool paint = style->colour && colour != CELL_PLAIN;
        if (cell.kind == CELL_NULL)
            continue;
        buf_printf(&o->line, "%-*s  %s", (int)width, o->columns[i]->name,
                   paint ? cell_colour_code(colour) : "");
        cell_put_plain(&o->line, &style->cell, &cell, 0, true);
        buf_str(&o->line, paint ? "\033[0m\n" : "\n");
    }
    out_write(&o->line);
    out_destroy(o);
}

/* ---- stdout ---- */

#define AHEAD (64 << 10)

static int write_errno; /* of the first write that failed */
static struct buf *captured;
/* Not those of stdio, which forgets some if the descriptor does not block. */
static char ahead[AHEAD];
static size_t ahead_len;

void out_capture(struct buf *to)
{
    captured = to;
}

static void write_all(const char *p, size_t len)
{
    while (len > 0 && write_errno == 0) {
        ssize_t n = write(STDOUT_FILENO, p, len);

        if (n < 0 && !again_wait(STDOUT_FILENO, POLLOUT))
            write_errno = errno;
        p += MAX(n, 0);
        len -= (size_t)MAX(n, 0);
    }
}

void out_sync(void)
{
    write_all(ahead, ahead_len);
    ahead_len = 0;
}

void out_write(const struct buf *b)
{
    if (captured) {
        buf_add(captured, b->data ? b->data : "", b->len);
        return;
    }
    if (b->len == 0)
        return;
    pager_begin();
    if (b->len > AHEAD - ahead_len)
        out_sync();
    if (b->len > AHEAD) {
        write_all(b->data, b->len);
        return;
    }
    memcpy(ahead + ahead_len, b->data, b->len);
    ahead_len += b->len;
}

void out_take(struct buf *b)
{
    out_write(b);
    buf_done(b);
}

void out_printf(const char *fmt, ...)
{
    struct buf b = BUF_INIT;
    va_list ap;

    va_start(ap, fmt);
    buf_vprintf(&b, fmt, ap);
    va_end(ap);
    out_take(&b);
}

bool out_failed(void)
{
    return write_errno != 0;
}

int out_flush(struct err *err)
{
    out_sync();
    if (write_errno == 0 || (write_errno == EPIPE && pager_active()))
        return 0;
    if (write_errno == EPIPE) {
        signal(SIGPIPE, SIG_DFL);
        raise(SIGPIPE);
    }
    return err_set(err, ERR_SYSTEM, "cannot write to standard output: %s", strerror(write_errno));
}
