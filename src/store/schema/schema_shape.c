/*
 * schema_shape.c - which tables, columns and indexes there are.
 *
 * What belongs there is read from the text of the migrations, so that it stands in one place; what
 * is there comes from information_schema. Both become the same lists. Invariant: spellings by which
 * servers differ (`int(10) unsigned`) are the same text in both.
 */
#include "store/schema/schema_shape.h"
#include "base/mem.h"
#include "store/db/columns.h"
#include "store/db/db_put.h"
#include "store/schema/schema.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define CREATE "CREATE TABLE IF NOT EXISTS "
#define ALTER "ALTER TABLE "

static void part_done(struct schema_shape_part *p)
{
    free(p->table);
    free(p->name);
    free(p->text);
    free(p->fallback);
}

/* Takes over what the part has. */
static void push(struct schema_shape_parts *p, const struct schema_shape_part *part)
{
    MEM_ROOM(p->items, p->count, p->cap);
    p->items[p->count++] = *part;
}

static void parts_done(struct schema_shape_parts *p)
{
    for (size_t i = 0; i < p->count; i++)
        part_done(&p->items[i]);
    free(p->items);
}

void schema_shape_done(struct schema_shape *s)
{
    parts_done(&s->tables);
    parts_done(&s->columns);
    parts_done(&s->indexes);
}

struct schema_shape_part *schema_shape_find(const struct schema_shape_parts *p, const char *table,
                                            const char *name)
{
    for (size_t i = 0; i < p->count; i++)
        if (!strcmp(p->items[i].table, table) && (!name || !strcmp(p->items[i].name, name)))
            return &p->items[i];
    return NULL;
}

static void drop(struct schema_shape_parts *p, const struct schema_shape_part *what)
{
    struct schema_shape_part *part = schema_shape_find(p, what->table, what->name);

    if (!part)
        return;
    part_done(part);
    *part = p->items[--p->count];
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
    MEM_LOCAL char *plain = plain_type(type);
    char *text = mem_printf("%s%s%s%s%s", plain, collation && *collation ? " " : "",
                            collation ? collation : "", nullable ? "" : " NOT NULL",
                            counted ? " AUTO_INCREMENT" : "");
    return text;
}

/* Servers write '0', 0 and NULL differently, and an expression with other brackets and quotes. */
static char *plain_default(const char *text)
{
    size_t len = text ? strlen(text) : 0;

    if (!text || !strcmp(text, "NULL"))
        return NULL;
    if (len > 1 && *text == '\'')
        return mem_dup(text + 1, len - 2);
    if (!strchr(text, '('))
        return mem_strdup(text);
    struct buf plain = BUF_INIT;
    buf_chr(&plain, '(');
    for (const char *c = text; *c; c++)
        if (!strchr("`() ", *c))
            buf_chr(&plain, (char)tolower((unsigned char)*c));
    buf_chr(&plain, ')');
    return buf_take(&plain);
}

/* ---- what belongs there */

/* The word behind `before` in text, or NULL. An expression in brackets is one. */
static char *word_after(const char *text, const char *before)
{
    const char *p = strstr(text, before);

    if (!p)
        return NULL;
    p += strlen(before);
    const char *close = *p == '(' ? strrchr(p, ')') : NULL;
    return mem_dup(p, close ? (size_t)(close + 1 - p) : strcspn(p, " ,"));
}

static char *default_of(const char *text, const char *before)
{
    MEM_LOCAL char *word = word_after(text, before);

    return plain_default(word);
}

/* "tag varchar(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT '...'" */
static struct schema_shape_part read_column(const char *table, char *line)
{
    char *comment = strstr(line, " COMMENT "), *rest = line + strcspn(line, " ");
    size_t quoted = *line == '`';

    if (comment)
        *comment = '\0';
    char *name = mem_dup(line + quoted, (size_t)(rest - line) - 2 * quoted);
    rest += *rest == ' ';
    size_t type = strcspn(rest, " ");
    if (!strncmp(rest + type, " unsigned", 9))
        type += 9;
    MEM_LOCAL char *type_text = mem_dup(rest, type), *collation = word_after(rest, "COLLATE ");
    bool nullable = !strstr(rest, "NOT NULL"), counted = strstr(rest, "AUTO_INCREMENT");
    char *text = describe(type_text, collation, nullable, counted);
    return (struct schema_shape_part){.table = mem_strdup(table),
                                      .name = name,
                                      .text = text,
                                      .fallback = default_of(rest, "DEFAULT "),
                                      .optional = nullable};
}

/* "UNIQUE KEY live_key (task_key, tag, live)" */
static struct schema_shape_part read_index(const char *table, const char *line)
{
    const char *open = line + strcspn(line, "("), *key = strstr(line, "KEY ");
    bool primary = !strncmp(line, "PRIMARY", 7);
    char *name = primary || !key ? mem_strdup("PRIMARY") : mem_dup(key + 4, strcspn(key + 4, " ("));

    return (struct schema_shape_part){.table = mem_strdup(table),
                                      .name = name,
                                      .text = mem_strdup(open),
                                      .optional = !strncmp(line, "KEY", 3)};
}

static bool is_index(const char *line)
{
    return !strncmp(line, "PRIMARY KEY ", 12) || !strncmp(line, "UNIQUE KEY ", 11) ||
           !strncmp(line, "KEY ", 4);
}

static void read_table(const char *table, const char *statement, struct schema_shape *s)
{
    const char *line = strchr(statement, '\n');

    for (; line; line = strchr(line, '\n')) {
        line += 1 + strspn(line + 1, " ");
        size_t len = strcspn(line, "\n");
        MEM_LOCAL char *copy = mem_dup(line, len && line[len - 1] == ',' ? len - 1 : len);
        struct schema_shape_part part = {0};
        if (*copy == ')')
            part = (struct schema_shape_part){.table = mem_strdup(table),
                                              .name = mem_strdup(""),
                                              .text = word_after(copy, "ENGINE=")};
        else if (*copy)
            part = is_index(copy) ? read_index(table, copy) : read_column(table, copy);
        if (*copy)
            push(*copy == ')' ? &s->tables : is_index(copy) ? &s->indexes : &s->columns, &part);
    }
}

static const struct {
    const char *words;
    enum schema_shape_kind kind;
} verbs[] = {
    /* clang-format off */
    {"ADD COLUMN ", SCHEMA_SHAPE_ADD_COLUMN},
    {"ADD KEY ", SCHEMA_SHAPE_ADD_INDEX},
    {"ADD UNIQUE KEY ", SCHEMA_SHAPE_ADD_INDEX},
    {"ALTER COLUMN ", SCHEMA_SHAPE_SET_DEFAULT},
    {"DROP COLUMN ", SCHEMA_SHAPE_DROP_COLUMN},
    {"DROP KEY ", SCHEMA_SHAPE_DROP_INDEX},
    /* clang-format on */
};

/* What follows "ALTER TABLE name ", without ALGORITHM. */
static enum schema_shape_kind read_change(const char *table, char *text,
                                          struct schema_shape_part *ret)
{
    size_t i = 0;

    while (i < sizeof verbs / sizeof *verbs &&
           strncmp(text, verbs[i].words, strlen(verbs[i].words)) != 0)
        i++;
    if (i == sizeof verbs / sizeof *verbs)
        return SCHEMA_SHAPE_ROWS;
    char *rest = text + strlen(verbs[i].words);
    if (verbs[i].kind == SCHEMA_SHAPE_ADD_COLUMN)
        *ret = read_column(table, rest);
    else if (verbs[i].kind == SCHEMA_SHAPE_ADD_INDEX)
        *ret = read_index(table, text + strlen("ADD "));
    else
        *ret = (struct schema_shape_part){.table = mem_strdup(table),
                                          .name = mem_dup(rest, strcspn(rest, " ")),
                                          .fallback = default_of(rest, "SET DEFAULT ")};
    return verbs[i].kind;
}

static int read_alter(const char *statement, struct schema_shape_change *c, struct err *err)
{
    MEM_LOCAL char *copy = mem_strdup(statement + strlen(ALTER));
    char *text = copy + strcspn(copy, " "), *how = strstr(copy, ", ALGORITHM=");
    bool inplace = how && !strcmp(how, ", ALGORITHM=INPLACE, LOCK=NONE");

    c->instant = how && !strcmp(how, ", ALGORITHM=INSTANT");
    if (*text && (c->instant || inplace)) {
        *how = *text = '\0';
        c->kind = read_change(copy, text + 1, &c->part);
    }
    return c->kind == SCHEMA_SHAPE_ROWS
               ? err_set(err, ERR_FATAL, "schema_shape.h says how to write this: %s", statement)
               : 0;
}

int schema_shape_parse(const char *statement, struct schema_shape_change *ret, struct err *err)
{
    *ret = (struct schema_shape_change){.kind = SCHEMA_SHAPE_ROWS};
    if (!strncmp(statement, CREATE, strlen(CREATE))) {
        const char *table = statement + strlen(CREATE);
        ret->kind = SCHEMA_SHAPE_CREATE;
        ret->part.table = mem_dup(table, strcspn(table, " ("));
        return 0;
    }
    if (!strncmp(statement, ALTER, strlen(ALTER)))
        return read_alter(statement, ret, err);
    if (!strncmp(statement, "CREATE ", 7) || !strncmp(statement, "DROP ", 5))
        return err_set(err, ERR_FATAL, "schema_shape.h says how to write this: %s", statement);
    return 0;
}

void schema_shape_change_done(struct schema_shape_change *c)
{
    part_done(&c->part);
}

void schema_shape_apply(struct schema_shape *s, struct schema_shape_change *c,
                        const char *statement)
{
    struct schema_shape_part *column;

    switch (c->kind) {
    case SCHEMA_SHAPE_ROWS:
        return;
    case SCHEMA_SHAPE_CREATE:
        read_table(c->part.table, statement, s);
        break;
    case SCHEMA_SHAPE_ADD_COLUMN:
        push(&s->columns, &c->part);
        return;
    case SCHEMA_SHAPE_ADD_INDEX:
        push(&s->indexes, &c->part);
        return;
    case SCHEMA_SHAPE_DROP_COLUMN:
        drop(&s->columns, &c->part);
        break;
    case SCHEMA_SHAPE_DROP_INDEX:
        drop(&s->indexes, &c->part);
        break;
    case SCHEMA_SHAPE_SET_DEFAULT:
        column = schema_shape_find(&s->columns, c->part.table, c->part.name);
        if (column) {
            free(column->fallback);
            column->fallback = c->part.fallback;
            c->part.fallback = NULL;
        }
    }
    schema_shape_change_done(c);
}

bool schema_shape_has(const struct schema_shape *s, const struct schema_shape_change *c)
{
    const char *table = c->part.table, *name = c->part.name;
    const struct schema_shape_part *column;

    switch (c->kind) {
    case SCHEMA_SHAPE_ROWS:
        return false;
    case SCHEMA_SHAPE_CREATE:
        return schema_shape_find(&s->tables, table, NULL);
    case SCHEMA_SHAPE_ADD_COLUMN:
        return schema_shape_find(&s->columns, table, name);
    case SCHEMA_SHAPE_ADD_INDEX:
        return schema_shape_find(&s->indexes, table, name);
    case SCHEMA_SHAPE_DROP_COLUMN:
        return !schema_shape_find(&s->columns, table, name);
    case SCHEMA_SHAPE_DROP_INDEX:
        return !schema_shape_find(&s->indexes, table, name);
    case SCHEMA_SHAPE_SET_DEFAULT:
        column = schema_shape_find(&s->columns, table, name);
        return column && column->fallback && c->part.fallback &&
               !strcmp(column->fallback, c->part.fallback);
    }
    return false;
}

int schema_shape_expected(int version, struct schema_shape *ret, struct err *err)
{
    BUF_LOCAL struct buf sql = BUF_INIT;
    int rc = 0;

    for (int i = 0; i < version; i++) {
        const char *text = schema_migrations[i].sql;
        while (rc == 0 && schema_next_statement(&text, &sql)) {
            struct schema_shape_change c;
            rc = schema_shape_parse(sql.data, &c, err);
            if (rc == 0)
                schema_shape_apply(ret, &c, sql.data);
        }
    }
    return rc;
}

/* ---- what is there */

static void put_names(struct buf *sql, const struct schema_shape_parts *tables)
{
    buf_str(sql, " WHERE table_schema = DATABASE() AND table_name IN (");
    for (size_t i = 0; i < tables->count; i++) {
        if (i)
            buf_chr(sql, ',');
        db_put_text(sql, tables->items[i].table);
    }
    buf_chr(sql, ')');
}

/* clang-format off */
#define TABLE_COLUMNS(X)          \
    X(TABLE_NAME, "table_name")   \
    X(TABLE_ENGINE, "engine")     \
    X(TABLE_ROWS, "table_rows")
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

static void take_table(const struct db_rows *r, void *arg)
{
    struct schema_shape *s = arg;
    bool view = db_is_null(r, TABLE_ENGINE);
    struct schema_shape_part t = {
        .table = mem_strdup(db_string(r, TABLE_NAME)),
        .name = mem_strdup(""),
        .text = mem_strdup(view ? "none, as it is a view" : db_string(r, TABLE_ENGINE)),
        .rows = db_i64(r, TABLE_ROWS, 0)};

    push(&s->tables, &t);
}

static void take_column(const struct db_rows *r, void *arg)
{
    struct schema_shape *s = arg;
    const char *extra = db_string(r, COLUMN_EXTRA);
    bool nullable = !strcmp(db_string(r, COLUMN_NULLABLE), "YES"),
         counted = strstr(extra, "auto_increment");
    struct schema_shape_part c = {
        .table = mem_strdup(db_string(r, COLUMN_TABLE)),
        .name = mem_strdup(db_string(r, COLUMN_NAME)),
        .text =
            describe(db_string(r, COLUMN_TYPE), db_string(r, COLUMN_COLLATION), nullable, counted),
        .fallback = plain_default(db_text(r, COLUMN_DEFAULT, NULL))};

    c.optional = nullable || c.fallback || counted || strstr(extra, "GENERATED");
    push(&s->columns, &c);
}

static void take_index(const struct db_rows *r, void *arg)
{
    struct schema_shape *s = arg;
    struct schema_shape_part x = {.table = mem_strdup(db_string(r, INDEX_TABLE)),
                                  .name = mem_strdup(db_string(r, INDEX_NAME)),
                                  .text = mem_printf("(%s)", db_string(r, INDEX_PARTS)),
                                  .optional = db_u64(r, INDEX_MANY) != 0};

    push(&s->indexes, &x);
}

static int read_some(struct db *db, const char *select, const char *from,
                     const struct schema_shape_parts *tables, const char *tail, unsigned columns,
                     db_take_row *take, struct schema_shape *s, struct err *err)
{
    BUF_LOCAL struct buf sql = BUF_INIT;

    buf_printf(&sql, "SELECT %s FROM information_schema.%s", select, from);
    put_names(&sql, tables);
    buf_str(&sql, tail);
    return db_all(db, &sql, columns, take, s, err);
}

int schema_shape_read(struct db *db, const struct schema_shape_parts *tables,
                      struct schema_shape *ret, struct err *err)
{
    int rc = read_some(db, COLUMNS_SELECT(TABLE_COLUMNS), "tables", tables, "", TABLE_COUNT,
                       take_table, ret, err);

    if (rc == 0)
        rc = read_some(db, COLUMNS_SELECT(COLUMN_COLUMNS), "columns", tables,
                       " ORDER BY table_name, ordinal_position", COLUMN_COUNT, take_column, ret,
                       err);
    if (rc == 0)
        rc = read_some(db, COLUMNS_SELECT(INDEX_COLUMNS), "statistics", tables,
                       " GROUP BY table_name, index_name ORDER BY table_name, index_name",
                       INDEX_COUNT, take_index, ret, err);
    return rc;
}
