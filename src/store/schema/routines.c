/*
 * routines.c - the procedures of producers in SQL.
 *
 * Invariant: a procedure that is as it should be is left alone, so that its grants stay.
 */
#include "store/schema/routines.h"
#include "base/text.h"
#include "store/db/columns.h"
#include "store/db/db_put.h"
#include "store/row/sql.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define CREATE "CREATE PROCEDURE "
#define END_LINE "//\n" /* of a statement, alone on its line */
#define COMMENT "COMMENT '"
#define INTERNAL "dq: used by" /* so begins the comment of one that producers do not call */
#define INSTALL_TRIES 3
/* An expression; a value: the name. */
#define GRANT_ON "CONCAT(' ON PROCEDURE `', REPLACE(DATABASE(), '`', '``'), '`.? TO ')"

/* A statement of the script that creates a procedure. */
struct routine {
    const char *text, *comment; /* into the script */
    size_t len, comment_len;
    char name[65], mark[24];
};

/* Finds the next one from *text on. false: there is none. */
static bool next_routine(const char **text, struct routine *ret)
{
    const char *p = strstr(*text, "\n" CREATE);

    if (!p)
        return false;
    p++;
    const char *end = strstr(p, "\n" END_LINE), *name = p + strlen(CREATE);
    *ret = (struct routine){.text = p, .len = (size_t)(end - p)};
    memcpy(ret->name, name, strcspn(name, "("));
    ret->comment = strstr(p, COMMENT) + strlen(COMMENT);
    ret->comment_len = strcspn(ret->comment, "'");
    snprintf(ret->mark, sizeof ret->mark, " (%016" PRIx64 ")",
             text_hash(TEXT_HASH_INIT, p, ret->len));
    *text = end;
    return true;
}

enum state { MISSING, CURRENT, OTHER_TEXT, FOREIGN };

struct found {
    const struct routine *want;
    enum state state;
    bool own; /* works with the rights of this account */
};

/* clang-format off */
#define FOUND_COLUMNS(X)                     \
    X(FOUND_COMMENT, "routine_comment")      \
    X(FOUND_SECURITY, "security_type")       \
    X(FOUND_OWN, "definer = CURRENT_USER()")
/* clang-format on */
enum { FOUND_COLUMNS(COLUMNS_NAME) FOUND_COUNT };

static void take_found(const struct db_rows *r, void *arg)
{
    struct found *f = arg;
    const char *comment = db_string(r, FOUND_COMMENT), *mark = strrchr(comment, ' ');

    f->own = db_u64(r, FOUND_OWN) == 1;
    if (strncmp(comment, "dq: ", 4) != 0)
        f->state = FOREIGN;
    else if (mark && !strcmp(mark, f->want->mark) &&
             !strcmp(db_string(r, FOUND_SECURITY), "DEFINER"))
        f->state = CURRENT;
    else
        f->state = OTHER_TEXT;
}

/* Whether the account with whose rights it works has been dropped. Only a call shows that; each
 * procedure refuses a NULL before it does anything. */
static int is_orphan(struct db *db, const struct routine *r, bool *ret, struct err *err)
{
    BUF_LOCAL struct buf sql = BUF_INIT;
    const char *parameter = r->text, *end = strstr(r->text, "SQL SECURITY");
    const char *comma = "";
    struct err said = {0};

    buf_printf(&sql, "CALL %s(", r->name);
    while ((parameter = strstr(parameter, " p_")) && parameter < end) {
        buf_printf(&sql, "%s%s", comma, strncmp(parameter - 3, "OUT", 3) ? "NULL" : "@dq_any");
        comma = ", ";
        parameter++;
    }
    buf_chr(&sql, ')');
    int rc = db_exec(db, &sql, NULL, &said);
    *ret = rc == ERR_CONFIG;
    return db_connected(db) ? 0 : err_set(err, rc, "%s", said.text);
}

static int find(struct db *db, const struct routine *want, struct found *ret, struct err *err)
{
    struct found found = {.want = want, .state = MISSING};
    bool orphan = false;
    int rc = sql_first(db, FOUND_COUNT, take_found, &found, err,
                       "SELECT ? FROM information_schema.routines WHERE routine_schema = DATABASE()"
                       " AND routine_type = 'PROCEDURE' AND routine_name = ?",
                       SQL_PART(COLUMNS_SELECT(FOUND_COLUMNS)), SQL_TEXT(want->name));

    if (rc >= 0 && found.state == CURRENT && !found.own)
        rc = is_orphan(db, want, &orphan, err);
    if (orphan)
        found.state = OTHER_TEXT;
    *ret = found;
    return rc < 0 ? rc : 0;
}

/* The comment ends with a hash of the text: servers change a body before they show it. */
static void put_create(struct buf *sql, const struct routine *r, const char *or_replace)
{
    const char *name = r->text + strlen(CREATE), *mark_at = r->comment + r->comment_len;

    buf_printf(sql, "CREATE %sPROCEDURE ", or_replace);
    buf_add(sql, name, (size_t)(mark_at - name));
    buf_str(sql, r->mark);
    buf_add(sql, mark_at, r->len - (size_t)(mark_at - r->text));
}

static int create_plainly(struct db *db, const struct routine *r, bool or_replace, struct err *err)
{
    BUF_LOCAL struct buf sql = BUF_INIT;

    put_create(&sql, r, or_replace ? "OR REPLACE " : "");
    return db_exec(db, &sql, NULL, err);
}

static void take_grant(const struct db_rows *r, void *arg)
{
    buf_str(arg, db_string(r, COLUMNS_ONLY));
    buf_chr(arg, '\n');
}

/* Appends a line for each account that may execute it, other than this one: the statement that
 * allows it. If this account may not see them, one for any. */
static int read_grants(struct db *db, const struct routine *r, struct buf *lines, struct err *err)
{
    int rc = sql_all(db, COLUMNS_ONE, take_grant, lines, err,
                     "SELECT CONCAT('GRANT EXECUTE', IF(FIND_IN_SET('Alter Routine', proc_priv),"
                     " ', ALTER ROUTINE', ''), " GRANT_ON ", QUOTE(user), '@', QUOTE(host),"
                     " IF(FIND_IN_SET('Grant', proc_priv), ' WITH GRANT OPTION', ''))"
                     " FROM mysql.procs_priv WHERE db = DATABASE() AND routine_name = ?"
                     " AND routine_type = 'PROCEDURE' AND FIND_IN_SET('Execute', proc_priv)"
                     " AND CONCAT(user, '@', host) <> CURRENT_USER()",
                     SQL_PART(r->name), SQL_TEXT(r->name));
    if (rc == ERR_DENIED && strncmp(r->comment, INTERNAL, strlen(INTERNAL)) != 0)
        rc = sql_all(db, COLUMNS_ONE, take_grant, lines, err,
                     "SELECT CONCAT('GRANT EXECUTE', " GRANT_ON ", 'each account that calls it')",
                     SQL_PART(r->name));
    return rc == ERR_DENIED ? 0 : rc;
}

/* Repeats them, unless rc is an error already. What is not repeated is appended to *lost. */
static void repeat_grants(struct db *db, const struct buf *lines, int rc, struct buf *lost)
{
    BUF_LOCAL struct buf sql = BUF_INIT;

    for (size_t at = 0, len; at < lines->len; at += len + 1) {
        len = strcspn(lines->data + at, "\n");
        buf_reset(&sql);
        buf_add(&sql, lines->data + at, len);
        if (rc < 0 || db_exec(db, &sql, NULL, NULL) < 0)
            buf_add(lost, lines->data + at, len + 1);
    }
}

/* MariaDB keeps the grants, and the procedure is there all the time. On MySQL it is dropped only
 * after the server has shown that this account may create it. */
static int create(struct db *db, const struct routine *r, bool replace, struct buf *lost,
                  struct err *err)
{
    bool at_once = db_is_mariadb(db);
    BUF_LOCAL struct buf grants = BUF_INIT;

    int rc = create_plainly(db, r, replace && at_once, err);
    if (rc == ERR_DUPLICATE && replace) {
        rc = read_grants(db, r, &grants, err);
        if (rc == 0)
            rc = sql_exec(db, NULL, err, "DROP PROCEDURE IF EXISTS ?", SQL_PART(r->name));
        if (rc == 0) {
            rc = create_plainly(db, r, false, err);
            repeat_grants(db, &grants, rc, lost);
        }
    }
    return rc < 0 ? err_prefix(err, "procedure %s", r->name) : 0;
}

static int refuse_foreign(const struct db *db, const struct routine *r, struct err *err)
{
    return err_set(err, ERR_CONFIG,
                   "%s: the procedure %s is not dq's: rename it, give dq a database of its"
                   " own, or run dq init --no-routines",
                   db_server(db), r->name);
}

static int look_for_foreign(struct db *db, struct err *err)
{
    struct routine r;
    const char *text = routines_script;
    struct found found;

    while (next_routine(&text, &r)) {
        int rc = find(db, &r, &found, err);
        if (rc == 0 && found.state == FOREIGN)
            rc = refuse_foreign(db, &r, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* Another dq init may create or replace it between our look and our statement. 1: done, 0: nothing
 * to do. */
static int install(struct db *db, const struct routine *r, struct buf *lost, struct err *err)
{
    struct found found;

    for (int tries = 1;; tries++) {
        int rc = find(db, r, &found, err);
        if (rc < 0 || found.state == CURRENT)
            return rc;
        if (found.state == FOREIGN)
            return refuse_foreign(db, r, err);
        rc = create(db, r, found.state == OTHER_TEXT, lost, err);
        if (rc != ERR_DUPLICATE || tries == INSTALL_TRIES)
            return rc < 0 ? rc : 1;
    }
}

int routines_install(struct db *db, unsigned *ret_made, struct buf *lost, struct err *err)
{
    struct routine r;
    const char *text = routines_script;

    *ret_made = 0;
    int rc = look_for_foreign(db, err);
    while (rc >= 0 && next_routine(&text, &r)) {
        rc = install(db, &r, lost, err);
        *ret_made += rc == 1;
    }
    return rc < 0 ? rc : 0;
}

/* Whether the account has these rights on the database, or a role that may have them. */
static int may(struct db *db, const char *rights, unsigned count, bool *ret, struct err *err)
{
    uint64_t has = 0;
    int rc = sql_read(
        db, COLUMNS_ONE, sql_take_u64, &has, err,
        "SELECT IF(COALESCE(CURRENT_ROLE(), 'NONE') = 'NONE', COUNT(DISTINCT privilege_type), ?)"
        " FROM (SELECT grantee, privilege_type FROM information_schema.user_privileges"
        " UNION ALL SELECT grantee, privilege_type FROM information_schema.schema_privileges"
        " WHERE DATABASE() LIKE table_schema) granted"
        " WHERE REPLACE(grantee, '''', '') = CURRENT_USER() AND privilege_type IN (?)",
        SQL_INT(count), SQL_PART(rights));

    *ret = has == count;
    return rc;
}

/* An account may replace what it has created. */
static int plan(struct db *db, const struct routine *r, enum routines_action *ret, struct err *err)
{
    struct found found;
    bool allowed = true;

    int rc = find(db, r, &found, err);
    if (rc == 0 && found.state != CURRENT)
        rc = found.state == MISSING || found.own
                 ? may(db, "'CREATE ROUTINE'", 1, &allowed, err)
                 : may(db, "'CREATE ROUTINE', 'ALTER ROUTINE'", 2, &allowed, err);
    *ret = !allowed                 ? ROUTINES_DENIED
           : found.state == CURRENT ? ROUTINES_KEEP
           : found.state == MISSING ? ROUTINES_CREATE
                                    : ROUTINES_REPLACE;
    return rc;
}

int routines_plan(struct db *db, void (*fn)(const char *name, enum routines_action a, void *arg),
                  void *arg, struct err *err)
{
    struct routine r;
    const char *text = routines_script;
    enum routines_action action;

    int rc = look_for_foreign(db, err);
    while (rc == 0 && next_routine(&text, &r)) {
        rc = plan(db, &r, &action, err);
        if (rc == 0)
            fn(r.name, action, arg);
    }
    return rc;
}

int routines_check(struct db *db, struct routines_state *ret, struct err *err)
{
    struct routine r;
    const char *text = routines_script;
    struct found found;

    *ret = (struct routines_state){0};
    while (next_routine(&text, &r)) {
        int rc = find(db, &r, &found, err);
        if (rc < 0)
            return rc;
        ret->current += found.state == CURRENT;
        ret->missing += found.state == MISSING;
        ret->old += found.state == OTHER_TEXT;
        ret->foreign += found.state == FOREIGN;
    }
    if (ret->current || ret->old || ret->foreign) {
        ret->visible = true;
        return 0;
    }
    int rc = may(db, "'EXECUTE'", 1, &ret->visible, err);
    return rc == 0 && !ret->visible ? may(db, "'CREATE ROUTINE'", 1, &ret->visible, err) : rc;
}

void routines_put_script(struct buf *sql)
{
    struct routine r;
    const char *text = routines_script, *from = text;

    while (next_routine(&text, &r)) {
        buf_add(sql, from, (size_t)(r.text - from));
        buf_printf(sql, "/*!50700 DROP PROCEDURE IF EXISTS %s */\n" END_LINE, r.name);
        put_create(sql, &r, "/*M!100101 OR REPLACE */ ");
        from = r.text + r.len;
    }
    buf_str(sql, from);
}

static void put_utc(struct buf *json, const char *separator, const char *name, int64_t when_at)
{
    BUF_LOCAL struct buf at = BUF_INIT;

    db_put_time(&at, when_at);
    buf_printf(json, "%s\"%s\": \"%.*s\"", separator, name, (int)at.len - 2, at.data + 1);
}

static void put_options(struct buf *sql, const struct task_new *t, enum key_conflict on_conflict)
{
    static const char *const conflicts[] = {[KEY_KEEP] = "keep",
                                            [KEY_ERROR] = "error",
                                            [KEY_REPLACE] = "replace",
                                            [KEY_AGAIN] = "again",
                                            [KEY_DEBOUNCE] = "again"};
    BUF_LOCAL struct buf json = BUF_INIT;
    const char *separator = "";

    buf_chr(&json, '{');
    if (t->expected_at != TASK_TIME_NONE) {
        put_utc(&json, "", "utc", t->expected_at);
        separator = ", ";
    } else if (t->delay_ms || t->attempt) {
        buf_printf(&json, "\"delay_ms\": %" PRId64, t->delay_ms);
        separator = ", ";
    }
    if (t->max_attempts) {
        buf_printf(&json, "%s\"max_attempts\": %" PRIu32, separator, t->max_attempts);
        separator = ", ";
    }
    if (t->attempt) {
        buf_printf(&json, "%s\"attempted\": %" PRIu32, separator, t->attempt);
        separator = ", ";
    }
    if (t->level) {
        buf_printf(&json, "%s\"priority\": \"%s\"", separator, task_level_names[t->level]);
        separator = ", ";
    }
    if (t->expires_ms) {
        buf_printf(&json, "%s\"expires_ms\": %" PRId64, separator, t->expires_ms);
        separator = ", ";
    } else if (t->expires_at) {
        put_utc(&json, separator, "expires_utc", t->expires_at);
        separator = ", ";
    }
    buf_printf(&json, "%s\"key_conflict\": \"%s\"%s}", separator, conflicts[on_conflict],
               on_conflict == KEY_DEBOUNCE ? ", \"debounce\": true" : "");
    db_put_text(sql, json.data);
}

#define ODD_MOST 200 /* each may be a part of its own */

static bool is_odd(char c)
{
    return c < ' ' || c > '~' || c == '\\';
}

static void put_part(struct buf *sql, const char *p, size_t len, bool hex)
{
    static const char digits[] = "0123456789abcdef";

    buf_str(sql, hex ? "X'" : "'");
    for (size_t i = 0; i < len; i++) {
        if (hex)
            buf_chr(sql, digits[(unsigned char)p[i] >> 4]);
        else if (p[i] == '\'')
            buf_chr(sql, '\'');
        buf_chr(sql, hex ? digits[(unsigned char)p[i] & 15] : p[i]);
    }
    buf_chr(sql, '\'');
}

/* To be read and pasted: text with the odd bytes in it in hex, or all in hex if these are many. A
 * doubled quote is one in every character set and sql_mode; '' may be NULL, X'' is empty. */
static void put_body(struct buf *sql, const char *body, size_t size)
{
    size_t odd = 0, from = 0;

    for (size_t i = 0; i < size; i++)
        odd += is_odd(body[i]);
    const bool hex = odd > ODD_MOST || odd > size / 4 + 1, parts = !hex && odd && odd < size;

    buf_str(sql, parts ? "CONCAT(" : "");
    do {
        size_t to = from;
        while (to < size && (hex || is_odd(body[to]) == is_odd(body[from])))
            to++;
        buf_str(sql, from ? ", " : "");
        put_part(sql, body + from, to - from, hex || !size || is_odd(body[from]));
        from = to;
    } while (from < size);
    buf_str(sql, parts ? ")" : "");
}

static void put_key(struct buf *sql, const char *key)
{
    bool odd = !key;

    for (const char *c = key; c && *c; c++)
        odd |= is_odd(*c);
    if (odd)
        db_put_text(sql, key);
    else
        put_part(sql, key, strlen(key), false);
}

void routines_put_call(struct buf *sql, const struct task_new *t, enum key_conflict on_conflict)
{
    bool expires = t->expires_ms || t->expires_at;
    bool again = on_conflict == KEY_AGAIN && t->expected_at == TASK_TIME_NONE;
    bool options =
        t->max_attempts || t->attempt || t->level || expires || (on_conflict != KEY_KEEP && !again);

    buf_str(sql, options                            ? "CALL dq_add_options("
                 : again                            ? "CALL dq_add_again("
                 : t->expected_at != TASK_TIME_NONE ? "CALL dq_add_at("
                                                    : "CALL dq_add(");
    db_put_text(sql, t->tag);
    buf_str(sql, ", ");
    put_key(sql, t->key);
    buf_str(sql, ", ");
    put_body(sql, t->body ? t->body : "", t->body_size);
    buf_str(sql, ", ");
    if (options)
        put_options(sql, t, on_conflict);
    else if (t->expected_at != TASK_TIME_NONE)
        db_put_time(sql, t->expected_at);
    else
        buf_printf(sql, "%" PRId64, t->delay_ms);
    buf_str(sql, ", @id);\n");
}
