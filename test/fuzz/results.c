/*
 * results.c - any results of a server as what the store reads: a value or an error, and no memory touched that is not its own.
 *
 * In place of the client library stands a server that answers each statement as the input says: as it should be, with an error,
 * with other columns; cells are NULL, numbers, times, tags or any bytes. A row is a block of its own, gone with the next one, so
 * that the sanitizer sees each byte that is read beside it.
 */
#include "base/mem.h"
#include "store/claim_store.h"
#include "store/db_private.h"
#include "store/poller_store.h"
#include "store/rows.h"
#include "store/schema.h"
#include "store/tag_store.h"
#include "store/task_store.h"

#include <errmsg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef MARIADB_PACKAGE_VERSION
typedef my_bool client_bool;
#else
typedef bool client_bool;
#endif

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static const uint8_t *input;
static size_t left;
static bool used_up; /* from then on every answer is plain, so that all loops end */

static unsigned next(void)
{
    if (!left) {
        used_up = true;
        return 0;
    }
    left--;
    return *input++;
}

/* Nobody waits here. */
int nanosleep(const struct timespec *wanted, struct timespec *rest)
{
    (void)wanted;
    (void)rest;
    return 0;
}

/* ---- the server */

static MYSQL connection;
static bool connected;
static unsigned error_number, columns;
static bool idle_process; /* the statement asks whether a broken connection is still at work */

static MYSQL_RES *result; /* one at a time, and nothing in it but that it is there */
static char **row;
static unsigned long *lengths;
static unsigned rows_left;

/* How many columns a statement asks for: commas outside of parentheses and quotes. 0: it has no result. */
static unsigned asked_for(const char *sql, size_t len)
{
    const char *end = sql + len, *p = memmem(sql, len, " RETURNING ", 11);
    unsigned count = 1, depth = 0;

    if (p)
        p += 11;
    else if (len > 5 && !strncmp(sql, "SHOW ", 5))
        return 2;
    else if (len > 8 && !strncmp(sql + (*sql == '('), "SELECT ", 7))
        p = sql + 7 + (*sql == '(');
    if (!p)
        return 0;
    for (; p < end; p++) {
        if (*p == '\'' && (p = memchr(p + 1, '\'', (size_t)(end - p - 1))) == NULL)
            break;
        depth += *p == '(';
        if (*p == ')' && depth-- == 0)
            break;
        if (!depth && end - p > 6 && !memcmp(p, " FROM ", 6))
            break;
        count += *p == ',' && !depth;
    }
    return count;
}

static char *cell(size_t *ret_len)
{
    static const char *const times[] = {"2026-11-21 09:00:00.000", "0000-00-00 00:00:00.000", "0001-01-01 00:00:00",
                                        "2026-00-15 00:00:00",     "9999-12-31 23:59:59.999", "2026-11-21",
                                        "1969-12-31 23:59:59.999", "99999999-99-99 99:99:99"};
    static const char *const numbers[] = {"18446744073709551615", "-1",   "9223372036854775807",
                                          "-9223372036854775808", "1e99", "99999999999999999999",
                                          "4294967296",           "3.5"};
    unsigned kind = used_up ? 255 : next();
    char text[80], *p;

    if (kind < 24)
        return NULL;
    if (used_up)
        snprintf(text, sizeof text, "%d", !idle_process);
    else if (kind < 112)
        snprintf(text, sizeof text, "%u", next());
    else if (kind < 144)
        snprintf(text, sizeof text, "%s", numbers[kind % 8]);
    else if (kind < 184)
        snprintf(text, sizeof text, "%s", times[kind % 8]);
    else {
        *ret_len = kind & 31;
        p = mem_alloc(*ret_len + 1);
        for (size_t i = 0; i < *ret_len; i++)
            p[i] = (char)next();
        p[*ret_len] = '\0';
        return p;
    }
    *ret_len = strlen(text);
    return mem_dup(text, *ret_len);
}

static void row_free(void)
{
    for (unsigned i = 0; row && i < columns; i++)
        free(row[i]);
    free(row);
    free(lengths);
    row = NULL;
    lengths = NULL;
}

int mysql_real_query(MYSQL *my, const char *sql, unsigned long len)
{
    static const unsigned errors[] = {1020, 1062, 1142, 1205, 1213, 1290, 1317, 1406,
                                      1927, 2006, 2013, 2014, 3100, 4031, 9999, 1046};

    if (my != &connection || !connected || result)
        abort(); /* a statement on no connection, or within a result */
    unsigned how = next();
    columns = asked_for(sql, len);
    idle_process = memmem(sql, len, "processlist", 11) != NULL;
    error_number = 0;
    if (used_up || how < 208)
        return 0;
    if (how < 232)
        error_number = errors[next() % 16];
    else
        columns = next() % 32;
    return error_number != 0;
}

int mysql_query(MYSQL *my, const char *sql)
{
    return mysql_real_query(my, sql, strlen(sql));
}

unsigned mysql_field_count(MYSQL *my)
{
    (void)my;
    return columns;
}

unsigned mysql_num_fields(MYSQL_RES *r)
{
    (void)r;
    return columns;
}

MYSQL_RES *mysql_store_result(MYSQL *my)
{
    (void)my;
    if (!columns)
        return NULL;
    unsigned rows = used_up ? 1 : next();
    result = mem_zero(1, sizeof *result);
    rows_left = rows < 240 ? rows % 6 : rows; /* some pages are full */
    return result;
}

MYSQL_RES *mysql_use_result(MYSQL *my)
{
    return mysql_store_result(my);
}

MYSQL_ROW mysql_fetch_row(MYSQL_RES *r)
{
    if (r != result)
        abort();
    row_free();
    if (!rows_left) {
        if (!used_up && next() > 250)
            error_number = 2013; /* a streamed result breaks */
        return NULL;
    }
    rows_left--;
    row = mem_zero(columns, sizeof *row);
    lengths = mem_zero(columns, sizeof *lengths);
    for (unsigned i = 0; i < columns; i++) {
        size_t len = 0;
        row[i] = cell(&len);
        lengths[i] = len;
    }
    return row;
}

unsigned long *mysql_fetch_lengths(MYSQL_RES *r)
{
    (void)r;
    return lengths;
}

void mysql_free_result(MYSQL_RES *r)
{
    if (!r || r != result)
        abort();
    row_free();
    free(r);
    result = NULL;
}

unsigned mysql_errno(MYSQL *my)
{
    (void)my;
    return error_number;
}

const char *mysql_error(MYSQL *my)
{
    (void)my;
    return error_number ? "what the server says about 'x'" : "";
}

my_ulonglong mysql_affected_rows(MYSQL *my)
{
    (void)my;
    unsigned rows = used_up ? 1 : next();
    return rows < 250 ? rows % 8 : (my_ulonglong)-1;
}

my_ulonglong mysql_insert_id(MYSQL *my)
{
    (void)my;
    return 7;
}

const char *mysql_info(MYSQL *my)
{
    (void)my;
    return next() % 2 ? "Records: 3  Duplicates: 99999999999999999999  Warnings: 0" : NULL;
}

unsigned long mysql_thread_id(MYSQL *my)
{
    (void)my;
    return 1;
}

const char *mysql_get_client_info(void)
{
    return "none";
}

void mysql_close(MYSQL *my)
{
    if (my != &connection || result)
        abort(); /* a result outlives its connection */
    connected = false;
}

/* Only long values are prepared, and none of these is long. */
MYSQL_STMT *mysql_stmt_init(MYSQL *my)
{
    (void)my;
    abort();
}

my_ulonglong mysql_stmt_affected_rows(MYSQL_STMT *s)
{
    (void)s;
    return 0;
}

client_bool mysql_stmt_bind_param(MYSQL_STMT *s, MYSQL_BIND *b)
{
    (void)s;
    (void)b;
    return 0;
}

client_bool mysql_stmt_close(MYSQL_STMT *s)
{
    (void)s;
    return 0;
}

unsigned mysql_stmt_errno(MYSQL_STMT *s)
{
    (void)s;
    return 0;
}

const char *mysql_stmt_error(MYSQL_STMT *s)
{
    (void)s;
    return "";
}

int mysql_stmt_execute(MYSQL_STMT *s)
{
    (void)s;
    return 0;
}

my_ulonglong mysql_stmt_insert_id(MYSQL_STMT *s)
{
    (void)s;
    return 0;
}

unsigned long mysql_stmt_param_count(MYSQL_STMT *s)
{
    (void)s;
    return 0;
}

int mysql_stmt_prepare(MYSQL_STMT *s, const char *sql, unsigned long len)
{
    (void)s;
    (void)sql;
    (void)len;
    return 0;
}

int db_connect(struct db *db, struct err *err)
{
    if (db->my)
        return 0;
    if (db->in_tx)
        return err_set(err, ERR_LOST, "the connection broke within a transaction");
    connected = true;
    db->my = &connection;
    db->mariadb = next() % 2;
    db->version = 101100;
    return 0;
}

int db_connect_create(struct db *db, struct err *err)
{
    return db_connect(db, err);
}

/* ---- what asks it */

static const struct claim_owner owner = {.token = "0123456789abcde", .host = "here", .pid = 1};

static void check_text(const char *text)
{
    if (text && strlen(text) > 1 << 20)
        abort();
}

static int check_task(const struct task *t, void *arg)
{
    (void)arg;
    if (!t->tag || t->status < 0 || t->status > TASK_STATUS_UNKNOWN || t->expected_at == TASK_TIME_NONE)
        abort();
    check_text(t->tag);
    check_text(t->key);
    check_text(t->error);
    check_text(task_status_name(t->status));
    return 0;
}

static void list(struct db *db)
{
    uint64_t ids[] = {1, 5, 7};
    unsigned how = next();
    struct task_filter f = {.due_before_at = TASK_TIME_NONE, .due_after_at = TASK_TIME_NONE, .since_at = TASK_TIME_NONE};
    struct err err;

    f.sort = (enum task_sort)(how % 4);
    f.limit = how & 4 ? 20 : 0;
    f.tag_glob = how & 8 ? "m*" : how & 16 ? "mail" : NULL;
    if (how & 32)
        f.ids = ids, f.id_count = 3;
    else if (how & 64)
        f.since_at = 1;
    f.statuses = how & 128 ? TASK_ANY : 0;
    (void)!task_store_list(db, &f, how & 1, check_task, NULL, &err);
}

static void change(struct db *db)
{
    unsigned how = next();
    struct task_filter f = {.due_before_at = TASK_TIME_NONE, .due_after_at = TASK_TIME_NONE, .since_at = TASK_TIME_NONE};
    struct task_change change = {.event = how % 2 ? TASK_CANCEL : TASK_RETRY, .expected_at = TASK_TIME_NONE};
    struct task_changed changed;
    struct row_faults faults = {0};
    struct err err;

    if (how & 4)
        (void)!task_store_delete(db, &f, TASK_TIME_NONE, false, NULL, NULL, &changed, &faults, &err);
    else
        (void)!task_store_change(db, &f, &change, false, NULL, NULL, &changed, &faults, &err);
    row_faults_done(&faults);
}

static void show(struct db *db)
{
    struct task t;
    struct task_attempt *attempts;
    size_t count;
    struct err err;

    if (task_store_get(db, 7, &t, &err) == 0) {
        check_task(&t, NULL);
        task_done(&t);
    }
    if (task_store_attempts(db, 7, &attempts, &count, &err) == 0)
        task_attempts_free(attempts, count);
}

static void add(struct db *db)
{
    struct task_new t[3] = {{.tag = "mail", .expected_at = TASK_TIME_NONE},
                            {.tag = "mail", .key = "k", .expected_at = 1},
                            {.tag = "x", .expected_at = 1}};
    struct task_added added;
    size_t kept, bad;
    struct err err;
    unsigned how = next();

    if (how & 1)
        (void)!task_store_add_many(db, t, 3, (enum key_conflict)(how / 2 % 3), &kept, &bad, &err);
    else
        (void)!task_store_add(db, &t[how & 1], (enum key_conflict)(how / 2 % 3), &added, &err);
}

static void claim(struct db *db)
{
    struct claim_peek peek = {0};
    struct claim_floor floor = {1, 1};
    struct claim_ask ask = {
        .tag = "mail", .limit = 5, .shares = 1 + next() % 3, .max_attempts = 3, .lease_ms = 1000, .global_limit = next() % 3};
    struct task_list won = {0};
    struct row_faults faults = {0};
    unsigned how = next();
    size_t seen, lost, loaded;
    int64_t now_us, next_at;
    struct err err;

    ask.careful = how & 2;
    ask.skip_locked = how & 4;
    ask.without_bodies = how & 8;
    if (claim_store_peek(db, 1000, &peek, &err) == 0)
        for (size_t i = 0; i < peek.count; i++)
            check_text(peek.tags[i].tag);
    uint64_t newest = next();
    (void)!claim_store_news(db, &newest, &peek, &err);
    (void)!claim_store_next(db, "mail", &floor, &now_us, &next_at, &err);
    (void)!claim_store_claim(db, &owner, &ask, &won, &seen, &lost, how & 1 ? &faults : NULL, &err);
    (void)!claim_store_recover(db, &owner, NULL, 0, &won, &err);
    struct task **tasks = mem_alloc((won.count + 1) * sizeof *tasks);
    for (size_t i = 0; i < won.count; i++) {
        tasks[i] = &won.items[i];
        check_task(tasks[i], NULL);
    }
    if (won.count)
        (void)!claim_store_measure(db, tasks, won.count, &err);
    if (won.count)
        (void)!claim_store_load_bodies(db, tasks, won.count, 1000, &loaded, &err);
    free(tasks);
    row_faults_done(&faults);
    task_list_done(&won);
    claim_peek_done(&peek);
}

static void keep(struct db *db)
{
    struct claim_ref refs[3] = {{1, 1}, {2, 2}, {5, 3}};
    struct settlement s[3] = {{.id = 1, .version = 1, .event = TASK_SUCCEED, .exit_code = 0},
                              {.id = 2, .version = 2, .event = TASK_TRY_LATER, .exit_code = 1, .error = "x"},
                              {.id = 5, .version = 3, .event = TASK_GIVE_UP, .exit_code = 2}};
    bool lost[3], applied[3], give_up[600] = {false}, taken[600], careful = next() % 2;
    struct row_faults faults = {0};
    struct task_list expired = {0};
    size_t n;
    struct err err;

    (void)!claim_store_check(db, &owner, refs, 3, lost, &err);
    (void)!claim_store_renew(db, &owner, refs, 3, 1000, careful, lost, &faults, &err);
    (void)!claim_store_settle(db, &owner, s, 3, false, careful, applied, &faults, &err);
    if (claim_store_expired(db, NULL, 0, 500, &expired, &err) == 0 && expired.count <= 500)
        (void)!claim_store_take_back(db, &expired, give_up, careful, taken, &faults, &err);
    task_list_done(&expired);
    (void)!claim_store_expire_finished(db, TASK_DONE, 1000, 100, &n, &faults, &err);
    row_faults_done(&faults);
}

static void look(struct db *db)
{
    struct tag_info *tags;
    struct tag_lateness *late;
    struct poller_info *pollers;
    struct poller_share share;
    size_t count;
    int64_t now_at;
    struct err err;

    if (tag_store_list(db, next() % 2 ? "m*" : NULL, next() % 2, &tags, &count, &now_at, &err) == 0)
        tag_infos_free(tags, count);
    if (tag_store_lateness(db, NULL, 1000, &late, &count, &err) == 0)
        tag_lateness_free(late, count);
    if (poller_store_list(db, &pollers, &count, &err) == 0)
        poller_infos_free(pollers, count);
    (void)!poller_store_beat(db, &owner, "once", 1, 1, 1000, next() % 2, &share, &err);
}

static void verify(struct db *db)
{
    struct err err;
    int version;

    (void)!schema_check(db, &err);
    (void)!schema_version(db, &version, &err);
    (void)!schema_verify(db, schema_latest, next() % 2, &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static void (*const parts[])(struct db * db) = {list, change, show, add, claim, keep, look, verify};
    const struct conf_mysql conf = {.database = NULL};

    input = bytes;
    left = len;
    used_up = false;
    struct db *db = db_new(&conf);
    parts[next() % (sizeof parts / sizeof *parts)](db);
    db_free(db);
    if (result || connected)
        abort();
    return 0;
}
