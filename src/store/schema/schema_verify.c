/*
 * schema_verify.c - whether the tables of a database are those that the migrations make.
 *
 * Invariant: what others may have added is no difference as long as it cannot make a statement of
 * dq fail: columns with a default, indexes that are not unique.
 */
#include "store/schema/schema_verify.h"
#include "store/row/sql.h"
#include "store/schema/schema.h"
#include "store/schema/schema_shape.h"

#include <string.h>
#include <sys/param.h>

#define SHOWN 3 /* differences in one message */

struct faults {
    struct buf text;
    unsigned count;
    struct buf mend; /* statements that end them */
};

static void fault(struct faults *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void fault(struct faults *f, const char *fmt, ...)
{
    va_list ap;

    if (++f->count > SHOWN)
        return;
    buf_str(&f->text, f->count > 1 ? "; " : "");
    va_start(ap, fmt);
    buf_vprintf(&f->text, fmt, ap);
    va_end(ap);
}

/* ---- statements that end a fault */

/* "varchar(128) utf8mb4_bin NOT NULL" as SQL has it. A default that is an expression is left out:
 * its text was only kept for comparison. */
static void put_column(struct buf *b, const struct schema_shape_part *want)
{
    for (const char *p = want->text; *p;) {
        size_t len = strcspn(p, " ");
        bool collation = len > 4 && !memcmp(p + len - 4, "_bin", 4);
        buf_printf(b, " %s%.*s", collation ? "COLLATE " : "", (int)len, p);
        p += len + (p[len] == ' ');
    }
    if (want->fallback && !strpbrk(want->fallback, "'\\(,"))
        buf_printf(b, " DEFAULT '%s'", want->fallback);
}

static void mend_column(struct faults *f, const struct schema_shape_part *want, const char *how)
{
    buf_printf(&f->mend, "ALTER TABLE %s %s COLUMN `%s`", want->table, how, want->name);
    put_column(&f->mend, want);
    buf_str(&f->mend, "; ");
}

static void mend_index(struct faults *f, const struct schema_shape_part *want, bool drop)
{
    buf_printf(&f->mend, "ALTER TABLE %s ", want->table);
    if (drop)
        buf_printf(&f->mend, "DROP KEY `%s`, ", want->name);
    if (!strcmp(want->name, "PRIMARY"))
        buf_printf(&f->mend, "ADD PRIMARY KEY %s; ", want->text);
    else
        buf_printf(&f->mend, "ADD %sKEY %s %s; ", want->optional ? "" : "UNIQUE ", want->name,
                   want->text);
}

/* A part before the migration that is next and after it (NULL: not there), and as it is. */
struct trio {
    const struct schema_shape_part *before, *after, *have;
};

static bool same_default(const struct schema_shape_part *want, const struct schema_shape_part *have)
{
    return !want->fallback || (have->fallback && !strcmp(want->fallback, have->fallback));
}

static void compare_column(const struct trio *c, struct faults *f)
{
    const struct schema_shape_part *want = c->before ? c->before : c->after, *have = c->have;

    if (strcmp(want->text, have->text) != 0 ||
        (!same_default(want, have) && !(c->after && same_default(c->after, have))))
        mend_column(f, want, "MODIFY");
    if (strcmp(want->text, have->text) != 0)
        fault(f, "column %s.%s is %s, not %s", want->table, want->name, have->text, want->text);
    else if (!same_default(want, have) && !(c->after && same_default(c->after, have)))
        fault(f, "column %s.%s has the default %s, not %s", want->table, want->name,
              have->fallback ? have->fallback : "NULL", want->fallback);
}

static void compare_index(const struct trio *x, struct faults *f)
{
    const struct schema_shape_part *want = x->before ? x->before : x->after, *have = x->have;

    if (strcmp(want->text, have->text) == 0 && want->optional == have->optional)
        return;
    mend_index(f, want, true);
    fault(f, "index %s.%s is %s%s, not %s%s", want->table, want->name,
          have->optional ? "" : "unique ", have->text, want->optional ? "" : "unique ", want->text);
}

static void missing_column(const struct schema_shape_part *want, struct faults *f)
{
    mend_column(f, want, "ADD");
    fault(f, "column %s.%s is missing (%s)", want->table, want->name, want->text);
}

static void missing_index(const struct schema_shape_part *want, struct faults *f)
{
    mend_index(f, want, false);
    fault(f, "index %s.%s is missing: %s%s", want->table, want->name,
          want->optional ? "" : "unique ", want->text);
}

static void foreign_column(const struct schema_shape_part *have, struct faults *f)
{
    fault(f, "column %s.%s is not one of dq's, and has no default", have->table, have->name);
}

static void foreign_index(const struct schema_shape_part *have, struct faults *f)
{
    buf_printf(&f->mend, "ALTER TABLE %s DROP KEY `%s`; ", have->table, have->name);
    fault(f, "unique index %s.%s %s is not one of dq's", have->table, have->name, have->text);
}

/* Columns, or indexes. */
struct kind {
    size_t parts; /* offset in struct schema_shape */
    void (*compare)(const struct trio *t, struct faults *f);
    void (*missing)(const struct schema_shape_part *want, struct faults *f);
    void (*foreign)(const struct schema_shape_part *have, struct faults *f);
};

static const struct kind kinds[] = {
    /* clang-format off */
    {offsetof(struct schema_shape, columns), compare_column, missing_column, foreign_column},
    {offsetof(struct schema_shape, indexes), compare_index, missing_index, foreign_index},
    /* clang-format on */
};

static const struct schema_shape_parts *parts_of(const struct schema_shape *s, const struct kind *k)
{
    return (const struct schema_shape_parts *)((const char *)s + k->parts);
}

struct shapes {
    struct schema_shape before, after;
    struct schema_shape last; /* of the newest version */
    struct schema_shape have;
};

/* A table that is there: what both versions have must be there, the rest may be. A table that is
 * new in the later version was created whole. */
static void compare_parts(const struct shapes *s, const struct kind *k, const char *table,
                          bool created, struct faults *f)
{
    const struct schema_shape_parts *before = parts_of(&s->before, k),
                                    *after = parts_of(&s->after, k), *have = parts_of(&s->have, k);

    for (size_t i = 0; i < after->count + before->count; i++) {
        bool late = i < after->count;
        const struct schema_shape_part *want =
            late ? &after->items[i] : &before->items[i - after->count];
        struct trio t = {schema_shape_find(before, table, want->name),
                         schema_shape_find(after, table, want->name),
                         schema_shape_find(have, table, want->name)};
        if (strcmp(want->table, table) != 0 || (!late && t.after))
            continue;
        if (t.have)
            k->compare(&t, f);
        else if (t.after && (t.before || created))
            k->missing(want, f);
    }
    for (size_t i = 0; i < have->count; i++) {
        const struct schema_shape_part *h = &have->items[i];
        if (!strcmp(h->table, table) && !h->optional &&
            !schema_shape_find(before, table, h->name) && !schema_shape_find(after, table, h->name))
            k->foreign(h, f);
    }
}

static void compare_table(const struct shapes *s, const struct schema_shape_part *want,
                          struct faults *f)
{
    const struct schema_shape_part *h = schema_shape_find(&s->have.tables, want->table, NULL);
    bool created = !schema_shape_find(&s->before.tables, want->table, NULL);

    if (!h) {
        if (!created)
            fault(f, "table %s is missing", want->table);
        return;
    }
    if (strcmp(want->text, h->text) != 0)
        fault(f, "the engine of %s is %s, not %s", want->table, h->text, want->text);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        compare_parts(s, &kinds[k], want->table, created, f);
}

/* A table that only a later migration creates: it may be there, if it is the right one. */
static void compare_later(const struct shapes *s, struct faults *f)
{
    const struct shapes created = {.after = s->last, .have = s->have};

    for (size_t i = 0; i < s->last.tables.count; i++) {
        const struct schema_shape_part *w = &s->last.tables.items[i];
        if (!schema_shape_find(&s->after.tables, w->table, NULL))
            compare_table(&created, w, f);
    }
}

static void compare(const struct shapes *s, struct faults *f)
{
    for (size_t i = 0; i < s->after.tables.count; i++)
        compare_table(s, &s->after.tables.items[i], f);
    compare_later(s, f);
}

int schema_verify_seen(struct db *db, const char *table, struct err *err)
{
    struct err why;
    int rc = sql_first(db, DB_ANY_COLUMNS, NULL, NULL, &why, SQL_EXPLAIN "SELECT * FROM ?",
                       SQL_PART(table));

    if (rc != ERR_DENIED)
        return 0;
    return err_set(
        err, ERR_DENIED,
        "%s: this account may not read all columns of %s: grant it SELECT on them, or use the account that made the tables",
        db_server(db), table);
}

/* Differences in what cannot be seen are none. A table that is not there may not be read either. */
static int check_seen(struct db *db, const struct shapes *s, struct err *err)
{
    const struct schema_shape_parts *sides[] = {&s->before.tables, &s->have.tables};
    int rc = 0;

    for (size_t k = 0; k < sizeof sides / sizeof *sides; k++)
        for (size_t i = 0; rc == 0 && i < sides[k]->count; i++)
            rc = schema_verify_seen(db, sides[k]->items[i].table, err);
    return rc;
}

int schema_verify(struct db *db, int version, struct buf *mend, struct err *err)
{
    struct shapes s = {0};
    struct faults f = {BUF_INIT, 0, BUF_INIT};

    int rc = schema_shape_expected(version, &s.before, err);
    if (rc == 0)
        rc = schema_shape_expected(MIN(version + 1, schema_latest), &s.after, err);
    if (rc == 0)
        rc = schema_shape_expected(schema_latest, &s.last, err);
    if (rc == 0)
        rc = schema_shape_read(db, &s.last.tables, &s.have, err);
    if (rc == 0)
        compare(&s, &f);
    if (f.count)
        rc = check_seen(db, &s, err);
    if (f.count > SHOWN)
        buf_printf(&f.text, "; and %u more", f.count - SHOWN);
    if (rc == 0 && mend && f.mend.len)
        buf_add(mend, f.mend.data, f.mend.len);
    if (rc == 0 && f.count)
        rc = err_set(
            err, ERR_CONFIG,
            "%s: these are not the tables of dq: %s. Put them right (see dq init --print-sql), or give dq a database of its own",
            db_server(db), f.text.data);
    buf_done(&f.text);
    buf_done(&f.mend);
    schema_shape_done(&s.before);
    schema_shape_done(&s.after);
    schema_shape_done(&s.last);
    schema_shape_done(&s.have);
    return rc;
}
