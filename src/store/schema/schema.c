/*
 * schema.c - which tables this program works with.
 *
 * Invariant: schema_version in dq_meta is a number whose migrations, up to and including it, have
 * all been applied; schema_compat is the oldest number whose programs work with the tables as they
 * are, also while a migration is under way.
 */
#include "store/schema/schema.h"
#include "store/db/columns.h"

#include <string.h>

#define NAME_VERSION "schema_version"

/* clang-format off */
#define META_COLUMNS(X)     \
    X(META_NAME, "name")    \
    X(META_VALUE, "value")
/* clang-format on */
enum { META_COLUMNS(COLUMNS_NAME) META_COUNT };

static void take_meta(const struct db_rows *r, void *arg)
{
    struct schema_range *range = arg;
    bool version = !strcmp(db_string(r, META_NAME), NAME_VERSION);

    *(version ? &range->version : &range->compat) = db_int(r, META_VALUE, 0);
    range->rows++;
}

int schema_read(struct db *db, struct schema_range *ret, struct err *err)
{
    struct schema_range range = {0};
    BUF_LOCAL struct buf sql = BUF_INIT;

    buf_printf(&sql,
               "SELECT %s FROM dq_meta WHERE name IN ('" NAME_VERSION "', '" SCHEMA_COMPAT "')",
               COLUMNS_SELECT(META_COLUMNS));
    int rc = db_all(db, &sql, META_COUNT, take_meta, &range, err);
    if (rc == 0)
        *ret = range;
    return rc;
}

int schema_check(struct db *db, struct err *err)
{
    struct schema_range r = {0};
    BUF_LOCAL struct buf sql = BUF_INIT;

    int rc = schema_read(db, &r, err);
    buf_str(&sql, "SELECT outcome FROM dq_attempt LIMIT 0"); /* a dump has this table first */
    if ((rc == 0 || rc == ERR_CONFIG) && r.rows < 2 &&
        db_first(db, &sql, COLUMNS_ONE, NULL, NULL, NULL) >= 0)
        rc = err_set(
            err, ERR_UNAVAILABLE,
            "%s: dq_meta lacks the schema's version, although there are other tables: wait until they are restored, or run dq init",
            db_server(db));
    if (rc < 0)
        return rc;
    if (r.compat > schema_latest)
        return err_set(
            err, ERR_CONFIG,
            "%s: the schema is version %d, made by a newer dq and compatible back to %d, this dq is made for %d: upgrade dq",
            db_server(db), r.version, r.compat, schema_latest);
    if (r.version < schema_latest || !r.compat)
        return err_set(
            err, ERR_CONFIG,
            "%s: the schema is version %d, compatible back to %d, this dq is made for %d: run dq init",
            db_server(db), r.version, r.compat, schema_latest);
    return 0;
}

void schema_put_from(struct buf *sql)
{
    buf_printf(sql,
               " FROM dq_meta v JOIN dq_meta c WHERE v.name = '" NAME_VERSION
               "' AND v.value >= %d AND c.name = '" SCHEMA_COMPAT "' AND c.value <= %d",
               schema_latest, schema_latest);
}

int schema_next_statement(const char **text, struct buf *sql)
{
    const char *line = *text;

    buf_reset(sql);
    while (*line) {
        size_t len = strcspn(line, "\n");
        const char *next = line + len + (line[len] == '\n');
        if (len && strncmp(line, "--", 2)) {
            bool last = line[len - 1] == ';';
            buf_add(sql, line, last ? len - 1 : len + 1);
            if (last) {
                *text = next;
                return 1;
            }
        }
        line = next;
    }
    return 0;
}

/* Only upwards: two of different age may be at work. */
static void put_number(struct buf *sql, const char *name, int number)
{
    buf_printf(sql,
               "INSERT INTO dq_meta (name, value) VALUES ('%s', '%d')"
               " ON DUPLICATE KEY UPDATE value = IF(value + 0 < %d, '%d', value);\n",
               name, number, number, number);
}

void schema_put_script(struct buf *sql, const struct schema_migration *m)
{
    bool creates_meta = m->number == 1;

    if (!creates_meta)
        put_number(sql, SCHEMA_COMPAT, m->compat);
    buf_printf(sql, "%s\n", m->sql);
    if (creates_meta)
        put_number(sql, SCHEMA_COMPAT, m->compat);
    put_number(sql, NAME_VERSION, m->number);
}
