/*
 * schema_verify.c - whether the tables of a database are those that the migrations make.
 *
 * What belongs there is read from the text of the migrations, one line a column or key, so that it
 * stands in one place; what is there comes from information_schema. Both become the same lists,
 * which are compared. Invariant: spellings by which servers differ
 * (`int(10) unsigned`) are no difference; neither is what others may have added, as long as it
 * cannot make a statement of dq fail: columns with a default, indexes that are not unique.
 */
#include "store/schema_verify.h"
#include "base/mem.h"
#include "store/columns.h"
#include "store/db_put.h"
#include "store/schema.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define CREATE "CREATE TABLE IF NOT EXISTS "
#define SHOWN 3 /* differences in one message */

/* A table (name NULL), a column or an index of one. */
struct part {
    char *table, *name;
    /* of a table its engine, of a column its type with what belongs to it, of an index its
     * columns */
    char *text;
    char *fallback; /* DEFAULT of a column; NULL: none */
    /* a column that may be NULL or has a value of its own, an index that is not unique */
    bool optional;
};

struct parts {
    struct part *items;
    size_t count, cap;
};

struct shape {
    struct parts tables, columns, indexes;
};

static struct part *part_add(struct parts *p, const char *table, const char *name)
{
    if (p->count == p->cap) {
        p->cap = p->cap ? 2 * p->cap : 64;
        p->items = mem_resize(p->items, p->cap, sizeof *p->items);
    }
    struct part *x = &p->items[p->count++];
    *x = (struct part){.table = mem_strdup(table), .name = mem_strdup(name)};
    return x;
}

static void parts_done(struct parts *p)
{
    for (size_t i = 0; i < p->count; i++) {
        free(p->items[i].table);
        free(p->items[i].name);
        free(p->items[i].text);
        free(p->items[i].fallback);
    }
    free(p->items);
}

static void shape_done(struct shape *s)
{
    parts_done(&s->tables);
    parts_done(&s->columns);
    parts_done(&s->indexes);
}

static const struct part *part_find(const struct parts *p, const char *table, const char *name)
{
    for (size_t i = 0; i < p->count; i++)
        if (!strcmp(p->items[i].table, table) && (!name || !strcmp(p->items[i].name, name)))
            return &p->items[i];
    return NULL;
}

/* "bigint(20) unsigned" is "bigint unsigned" on newer servers. */
static char *plain_type(const char *type)
{
    char *text = mem_strdup(type), *paren = strstr(text, "int(");

    if (paren) {
        char *close = strchr(paren, ')');
        if (close)
            memmove(paren + 3, close + 1, strlen(close + 1) + 1);
    }
    for (char *c = text; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    return text;
}

static char *describe(const char *type, const char *collation, bool nullable, bool counted)
{
    char *plain = plain_type(type);
    char *text = mem_printf("%s%s%s%s%s", plain, collation && *collation ? " " : "",
                            collation ? collation : "", nullable ? "" : " NOT NULL",
                            counted ? " AUTO_INCREMENT" : "");
    free(plain);
    return text;
}

/* ---- what belongs there */

/* The word behind `before` in text, or NULL. */
static char *word_after(const char *text, const char *before)
{
    const char *p = strstr(text, before);

    return p ? mem_dup(p + strlen(before), strcspn(p + strlen(before), " ,")) : NULL;
}

/* "tag varchar(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT '...'" */
static void read_column(const char *table, char *line, struct shape *s)
{
    char *comment = strstr(line, " COMMENT "), *rest = strchr(line, ' ');

    if (comment)
        *comment = '\0';
    if (!rest)
        return;
    *rest++ = '\0';
    size_t type = strcspn(rest, " ");
    if (!strncmp(rest + type, " unsigned", 9))
        type += 9;
    char *name = *line == '`' ? mem_dup(line + 1, strlen(line) - 2) : mem_strdup(line);
    char *type_text = mem_dup(rest, type), *collation = word_after(rest, "COLLATE ");
    struct part *c = part_add(&s->columns, table, name);
    bool nullable = !strstr(rest, "NOT NULL"), counted = strstr(rest, "AUTO_INCREMENT");
    c->text = describe(type_text, collation, nullable, counted);
    c->fallback = word_after(rest, "DEFAULT ");
    free(name);
    free(type_text);
    free(collation);
}

/* "UNIQUE KEY live_key (task_key, tag, live)" */
static void read_index(const char *table, const char *line, struct shape *s)
{
    const char *open = strchr(line, '('), *close = open ? strrchr(line, ')') : NULL,
               *key = strstr(line, "KEY ");
    bool primary = !strncmp(line, "PRIMARY", 7);

    if (!close || !key)
        return;
    char *name = primary ? mem_strdup("PRIMARY") : mem_dup(key + 4, (size_t)(open - key - 5));
    struct part *x = part_add(&s->indexes, table, name);
    x->text = mem_dup(open, (size_t)(close + 1 - open));
    x->optional = strncmp(line, "KEY", 3) == 0;
    free(name);
}

static void read_table(const char *statement, struct shape *s)
{
    char *table = mem_dup(statement + strlen(CREATE), strcspn(statement + strlen(CREATE), " ("));
    const char *line = strchr(statement, '\n');

    for (; line; line = strchr(line, '\n')) {
        line += 1 + strspn(line + 1, " ");
        size_t len = strcspn(line, "\n");
        char *copy = mem_dup(line, len && line[len - 1] == ',' ? len - 1 : len);
        if (*copy == ')')
            part_add(&s->tables, table, "")->text = word_after(copy, "ENGINE=");
        else if (!strncmp(copy, "PRIMARY KEY ", 12) || !strncmp(copy, "UNIQUE KEY ", 11) ||
                 !strncmp(copy, "KEY ", 4))
            read_index(table, copy, s);
        else if (*copy)
            read_column(table, copy, s);
        free(copy);
    }
    free(table);
}

/* Migrations make tables; one that changes one needs its words here, and says so at the first
 * test. */
static int read_migrations(int version, struct shape *s, struct err *err)
{
    struct buf sql = BUF_INIT;
    int rc = 0;

    for (int i = 0; i < version; i++) {
        const char *text = schema_migrations[i].sql;
        while (rc == 0 && schema_next_statement(&text, &sql)) {
            if (!strncmp(sql.data, CREATE, strlen(CREATE)))
                read_table(sql.data, s);
            else if (!strncmp(sql.data, "ALTER ", 6) || !strncmp(sql.data, "DROP ", 5) ||
                     !strncmp(sql.data, "CREATE ", 7))
                rc = err_set(err, ERR_FATAL,
                             "migration %s: schema_verify.c cannot read what it changes",
                             schema_migrations[i].name);
        }
    }
    buf_done(&sql);
    return rc;
}

/* ---- what is there */

static void put_names(struct buf *sql, const struct parts *tables)
{
    buf_str(sql, " WHERE table_schema = DATABASE() AND table_name IN (");
    for (size_t i = 0; i < tables->count; i++) {
        if (i)
            buf_chr(sql, ',');
        db_put_text(sql, tables->items[i].table);
    }
    buf_chr(sql, ')');
}

/* Servers write '0', 0 and NULL differently. */
static char *plain_default(const char *text)
{
    size_t len = text ? strlen(text) : 0;

    if (!text || !strcmp(text, "NULL"))
        return NULL;
    return len > 1 && *text == '\'' ? mem_dup(text + 1, len - 2) : mem_strdup(text);
}

#define TABLE_COLUMNS(X) X(TABLE_NAME, "table_name") X(TABLE_ENGINE, "engine")
/* clang-format off */
#define COLUMN_COLUMNS(X)                 \
    X(COLUMN_TABLE, "table_name")         \
    X(COLUMN_NAME, "column_name")         \
    X(COLUMN_TYPE, "column_type")         \
    X(COLUMN_NULLABLE, "is_nullable")     \
    X(COLUMN_COLLATION, "collation_name") \
    X(COLUMN_DEFAULT, "column_default")   \
    X(COLUMN_EXTRA, "extra")
#define INDEX_COLUMNS(X)                                                                                      \
    X(INDEX_TABLE, "table_name")                                                                              \
    X(INDEX_NAME, "index_name")                                                                               \
    X(INDEX_MANY, "MIN(non_unique)")                                                                          \
    X(INDEX_PARTS,                                                                                            \
      "GROUP_CONCAT(CONCAT(COALESCE(column_name, 'an expression'), COALESCE(CONCAT('(', sub_part, ')'), ''))" \
      " ORDER BY seq_in_index SEPARATOR ', ')")
/* clang-format on */
enum { TABLE_COLUMNS(COLUMNS_NAME) TABLE_COUNT };
enum { COLUMN_COLUMNS(COLUMNS_NAME) COLUMN_COUNT };
enum { INDEX_COLUMNS(COLUMNS_NAME) INDEX_COUNT };

static int take_table(const struct db_rows *r, void *arg, struct err *err)
{
    struct shape *s = arg;
    bool view = db_is_null(r, TABLE_ENGINE);

    (void)err;
    part_add(&s->tables, db_string(r, TABLE_NAME), "")->text =
        mem_strdup(view ? "none, as it is a view" : db_string(r, TABLE_ENGINE));
    return 0;
}

static int take_column(const struct db_rows *r, void *arg, struct err *err)
{
    struct shape *s = arg;
    struct part *c = part_add(&s->columns, db_string(r, COLUMN_TABLE), db_string(r, COLUMN_NAME));
    bool nullable = !strcmp(db_string(r, COLUMN_NULLABLE), "YES"),
         counted = strstr(db_string(r, COLUMN_EXTRA), "auto_increment");

    (void)err;
    c->text =
        describe(db_string(r, COLUMN_TYPE), db_string(r, COLUMN_COLLATION), nullable, counted);
    c->fallback = plain_default(db_text(r, COLUMN_DEFAULT, NULL));
    c->optional =
        nullable || c->fallback || counted || strstr(db_string(r, COLUMN_EXTRA), "GENERATED");
    return 0;
}

static int take_index(const struct db_rows *r, void *arg, struct err *err)
{
    struct shape *s = arg;
    struct part *x = part_add(&s->indexes, db_string(r, INDEX_TABLE), db_string(r, INDEX_NAME));

    (void)err;
    x->text = mem_printf("(%s)", db_string(r, INDEX_PARTS));
    x->optional = db_u64(r, INDEX_MANY) != 0;
    return 0;
}

static int read_some(struct db *db, const char *select, const char *from,
                     const struct parts *tables, const char *tail, unsigned columns,
                     int (*take)(const struct db_rows *r, void *arg, struct err *err),
                     struct shape *s, struct err *err)
{
    struct buf sql = BUF_INIT;

    buf_printf(&sql, "SELECT %s FROM information_schema.%s", select, from);
    put_names(&sql, tables);
    buf_str(&sql, tail);
    int rc = db_each(db, &sql, columns, take, s, err);
    buf_done(&sql);
    return rc;
}

static int read_database(struct db *db, const struct parts *tables, struct shape *s,
                         struct err *err)
{
    int rc = read_some(db, COLUMNS_SELECT(TABLE_COLUMNS), "tables", tables, "", TABLE_COUNT,
                       take_table, s, err);

    if (rc == 0)
        rc = read_some(db, COLUMNS_SELECT(COLUMN_COLUMNS), "columns", tables,
                       " ORDER BY table_name, ordinal_position", COLUMN_COUNT, take_column, s, err);
    if (rc == 0)
        rc = read_some(db, COLUMNS_SELECT(INDEX_COLUMNS), "statistics", tables,
                       " GROUP BY table_name, index_name ORDER BY table_name, index_name",
                       INDEX_COUNT, take_index, s, err);
    return rc;
}

/* ---- differences */

struct faults {
    struct buf text;
    unsigned count;
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

static void compare_columns(const struct shape *want, const struct shape *have, const char *table,
                            struct faults *f)
{
    for (size_t i = 0; i < want->columns.count; i++) {
        const struct part *w = &want->columns.items[i],
                          *h = part_find(&have->columns, table, w->name);
        if (strcmp(w->table, table))
            continue;
        if (!h)
            fault(f, "column %s.%s is missing (%s)", table, w->name, w->text);
        else if (strcmp(w->text, h->text))
            fault(f, "column %s.%s is %s, not %s", table, w->name, h->text, w->text);
        else if (w->fallback && (!h->fallback || strcmp(w->fallback, h->fallback)))
            fault(f, "column %s.%s has the default %s, not %s", table, w->name,
                  h->fallback ? h->fallback : "NULL", w->fallback);
    }
    for (size_t i = 0; i < have->columns.count; i++) {
        const struct part *h = &have->columns.items[i];
        if (!strcmp(h->table, table) && !h->optional && !part_find(&want->columns, table, h->name))
            fault(f, "column %s.%s is not one of dq's, and has no default", table, h->name);
    }
}

static void compare_indexes(const struct shape *want, const struct shape *have, const char *table,
                            struct faults *f)
{
    for (size_t i = 0; i < want->indexes.count; i++) {
        const struct part *w = &want->indexes.items[i],
                          *h = part_find(&have->indexes, table, w->name);
        if (strcmp(w->table, table))
            continue;
        if (!h)
            fault(f, "index %s.%s is missing: %s%s", table, w->name, w->optional ? "" : "unique ",
                  w->text);
        else if (strcmp(w->text, h->text) || w->optional != h->optional)
            fault(f, "index %s.%s is %s%s, not %s%s", table, w->name, h->optional ? "" : "unique ",
                  h->text, w->optional ? "" : "unique ", w->text);
    }
    for (size_t i = 0; i < have->indexes.count; i++) {
        const struct part *h = &have->indexes.items[i];
        if (!strcmp(h->table, table) && !h->optional && !part_find(&want->indexes, table, h->name))
            fault(f, "unique index %s.%s %s is not one of dq's", table, h->name, h->text);
    }
}

static void compare(const struct shape *want, const struct shape *have, bool partly,
                    struct faults *f)
{
    for (size_t i = 0; i < want->tables.count; i++) {
        const struct part *w = &want->tables.items[i],
                          *h = part_find(&have->tables, w->table, NULL);
        if (!h && !partly) {
            fault(f, "table %s is missing", w->table);
        } else if (h) {
            if (strcmp(w->text, h->text))
                fault(f, "the engine of %s is %s, not %s", w->table, h->text, w->text);
            compare_columns(want, have, w->table, f);
            compare_indexes(want, have, w->table, f);
        }
    }
}

int schema_verify(struct db *db, int version, bool partly, struct err *err)
{
    struct shape want = {0}, have = {0};
    struct faults f = {BUF_INIT, 0};

    int rc = read_migrations(version, &want, err);
    if (rc == 0)
        rc = read_database(db, &want.tables, &have, err);
    if (rc == 0)
        compare(&want, &have, partly, &f);
    if (f.count > SHOWN)
        buf_printf(&f.text, "; and %u more", f.count - SHOWN);
    if (f.count)
        rc = err_set(
            err, ERR_CONFIG,
            "%s: these are not the tables of dq: %s. Put them right, or give dq a database of its own",
            db_server(db), f.text.data);
    buf_done(&f.text);
    shape_done(&want);
    shape_done(&have);
    return rc;
}
