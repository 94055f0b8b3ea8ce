/*
 * cmd_schedule_file.c - dq schedule apply and export: schedules as lines of a file, the words of dq
 * schedule set.
 */
#include "cli/judge/fleet.h"
#include "cli/line/infile.h"
#include "cli/line/verbs.h"
#include "cli/many/act.h"
#include "cli/many/schedule_words.h"
#include "cli/show/inert.h"
#include "store/ask/schedule_store.h"

#include "base/mem.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MOST ((uint64_t)1 << 20)
#define APPLY_TRIES 5 /* another apply of the same owner may run at the same time */

struct apply_values {
    const char *owner;
    bool prune, dry_run;
};

struct file {
    const char *name;
    struct schedule *rows;
    uint64_t *lines; /* of the file, by row */
    size_t count, cap, line_cap;
};

static int add_line(struct cmd_context *c, struct file *f, const char *text, uint64_t line,
                    const char *owner, struct err *err)
{
    struct schedule s;
    int rc = schedule_words_read(c, &cmd_schedule_set, text, &s, err);
    for (size_t i = 0; rc > 0 && i < f->count; i++) {
        if (strcmp(f->rows[i].name, s.name) == 0) {
            rc = err_set(err, ERR_DATA, "%s has line %" PRIu64 " already", s.name, f->lines[i]);
            schedule_row_done(&s);
        }
    }
    if (rc > 0) {
        s.owner = owner ? mem_strdup(owner) : NULL;
        MEM_ROOM(f->lines, f->count, f->line_cap);
        MEM_ROOM(f->rows, f->count, f->cap);
        f->lines[f->count] = line;
        f->rows[f->count++] = s;
    }
    return rc < 0 ? err_prefix(err, "%s:%" PRIu64, f->name, line) : 0;
}

static int read_file(struct cmd_context *c, const char *path, const char *owner, struct file *f,
                     struct err *err)
{
    struct infile in;
    const char *text;
    size_t len;
    int rc = infile_open(&in, path, LINE_MOST, err), more = 0;
    f->name = in.name;
    while (rc == 0 && (more = infile_next(&in, &text, &len, err)) > 0) {
        MEM_LOCAL char *line = mem_dup(text, len);
        rc = strlen(line) == len
                 ? add_line(c, f, line, in.number, owner, err)
                 : err_set(err, ERR_DATA, "%s:%" PRIu64 ": a NUL byte", f->name, in.number);
    }
    infile_done(&in);
    return rc < 0 ? rc : more;
}

static const struct schedule *find_row(const struct schedule *rows, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

/* What is to be made of the schedules that there are: those of the file, and with --prune none else
 * of this owner. */
struct changes {
    struct schedule_change *items;
    size_t count;
    struct schedule *stored; /* all, by name */
    size_t stored_count;
};

static int plan(struct cmd_context *c, const struct apply_values *v, const struct file *f,
                struct changes *ret, struct err *err)
{
    const struct schedule_filter filter = {.bodies = true};
    int64_t now_at;
    if (v->prune && !f->count)
        return err_set(err, ERR_DATA,
                       "%s has no schedule; with --prune that would delete all of %s", f->name,
                       v->owner);
    int rc = schedule_store_list(c->db, &filter, &ret->stored, &ret->stored_count, &now_at, err);
    if (rc < 0)
        return rc;
    ret->items = mem_zero(f->count + ret->stored_count + 1, sizeof *ret->items);
    for (size_t i = 0; i < f->count; i++) {
        const struct schedule *old = find_row(ret->stored, ret->stored_count, f->rows[i].name);
        if (old && !v->owner && old->owner) /* it goes on belonging to the one whose file has it */
            f->rows[i].owner = mem_strdup(old->owner);
        ret->items[ret->count++] = (struct schedule_change){
            .set = &f->rows[i],
            .existed = old,
            .changed = old ? schedule_row_differs(old, &f->rows[i]) : UINT_MAX};
    }
    for (size_t i = 0; v->prune && i < ret->stored_count; i++) {
        const struct schedule *s = &ret->stored[i];
        if (s->owner && strcmp(s->owner, v->owner) == 0 && !find_row(f->rows, f->count, s->name))
            ret->items[ret->count++] =
                (struct schedule_change){.name = s->name, .existed = true, .changed = UINT_MAX};
    }
    return 0;
}

static void changes_done(struct changes *all)
{
    schedule_store_change_done(all->items, all->count);
    free(all->items);
    schedule_row_free(all->stored, all->stored_count);
    *all = (struct changes){0};
}

static int make(struct cmd_context *c, const struct file *f, const char *all_of,
                struct changes *all, struct err *err)
{
    size_t bad;
    int rc = act_schedules(c, c->operands[0], NULL, all->items, all->count, all_of, &bad, err);
    if (rc == ERR_DATA && bad < f->count)
        err_prefix(err, "%s:%" PRIu64, f->name, f->lines[bad]);
    return rc;
}

/* ---- what is printed ---- */

struct line {
    const char *name, *change;
    char *columns;
};

static const struct column line_columns[] = {
    OUT_FIELD(line, "name", TEXT, name, COLUMN_NARROW),
    OUT_FIELD(line, "change", TEXT, change, 0),
    OUT_FIELD(line, "columns", TEXT, columns, 0),
};

/* Returns how many there are. */
static size_t report(struct cmd_context *c, const struct changes *all)
{
    struct out *out = out_new(&c->style, OUT_OF(line_columns), NULL);
    size_t changed = 0;
    for (size_t i = 0; i < all->count; i++) {
        const struct schedule_change *change = &all->items[i];
        BUF_LOCAL struct buf columns = BUF_INIT;
        if (change->set && change->existed)
            schedule_words_put_changed(&columns, change->changed);
        struct line l = {.name = change->set ? change->set->name : change->name,
                         .change = !change->set       ? "deleted"
                                   : !change->existed ? "new"
                                                      : "changed",
                         .columns = columns.data};
        if (!change->changed)
            continue;
        out_row(out, &l);
        changed++;
    }
    out_end(out, 0);
    return changed;
}

static int run_apply(struct cmd_context *c, struct err *err)
{
    const struct apply_values *v = c->values;
    struct file f = {0};
    struct changes all = {0};
    size_t changed = 0;
    int rc = read_file(c, c->operands[0], v->owner, &f, err);
    for (int tries = 0; rc == 0; tries++) {
        rc = plan(c, v, &f, &all, err);
        if (rc == 0 && !v->dry_run)
            rc = make(c, &f, v->prune ? v->owner : NULL, &all, err);
        if (rc != ERR_STATE || tries == APPLY_TRIES)
            break;
        changes_done(&all);
        rc = 0;
    }
    if (rc == 0)
        changed = report(c, &all);
    if (rc == 0 && changed && !v->dry_run)
        cmd_wake_rules(c);
    if (rc == 0)
        cmd_note(c, "%s: %zu schedule%s, %zu change%s%s", f.name, f.count, f.count == 1 ? "" : "s",
                 changed, changed == 1 ? "" : "s", v->dry_run ? "; nothing was written" : "");
    changes_done(&all);
    schedule_row_free(f.rows, f.count);
    free(f.lines);
    return rc;
}

#define FIELD(name) offsetof(struct apply_values, name)
static const struct cmd_option apply_options[] = {
    {"owner", 0, CMD_TEXT, FIELD(owner), "NAME", NULL, 0},
    {"prune", 0, CMD_FLAG, FIELD(prune), NULL, NULL, 0},
    {"dry-run", 0, CMD_FLAG, FIELD(dry_run), NULL, NULL, 0},
};

const struct cmd cmd_schedule_apply = {
    .name = "schedule apply",
    CMD_OPTIONS(apply_options, apply_values),
    .requires = "prune owner",
    .min_operands = 1,
    .run = run_apply,
};

/* ---- export ---- */

static int run_export(struct cmd_context *c, struct err *err)
{
    const struct apply_values *v = c->values;
    const struct schedule_filter filter = {
        .glob = c->operand_count ? c->operands[0] : NULL, .owner = v->owner, .bodies = true};
    struct schedule *all;
    size_t count, paused = 0;
    struct buf b = BUF_INIT;
    int rc = schedule_store_list(c->db, &filter, &all, &count, &c->style.cell.now_at, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < count; i++) {
        schedule_words_put(&b, &cmd_schedule_set, &all[i]);
        buf_chr(&b, '\n');
        paused += all[i].paused_at != TASK_TIME_NONE;
    }
    inert_take(&b);
    if (paused)
        cmd_note(c, "paused schedules: %zu; the lines do not say so", paused);
    schedule_row_free(all, count);
    return 0;
}

static const struct cmd_option export_options[] = {
    {"owner", 0, CMD_TEXT, FIELD(owner), "NAME", NULL, 0},
};

const struct cmd cmd_schedule_export = {
    .name = "schedule export",
    CMD_OPTIONS(export_options, apply_values),
    .max_operands = 1,
    .reads_only = true,
    .formats = OUT_BIT(OUT_TABLE),
    .run = run_export,
};
