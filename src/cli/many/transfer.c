/*
 * transfer.c - see transfer.h. Invariant: what is written is read back the same.
 */
#include "cli/many/transfer.h"

#include "base/mem.h"
#include "base/when_parse.h"
#include "cli/show/task_columns.h"

#include <inttypes.h>
#include <string.h>

#define ATTEMPT_BEGIN "{\"task\":"
#define BEGIN_BEGIN "{\"begin\":"
#define END_BEGIN "{\"end\":"

#define COLUMN_ROW(...) COLUMN_UNSHOWN(task_attempt, __VA_ARGS__),
static const struct column attempt_columns[] = {ATTEMPT_STORE_KEY(COLUMN_ROW)
                                                    ATTEMPT_STORE_COLUMNS(COLUMN_ROW)};
#define ATTEMPT_COLUMNS (sizeof attempt_columns / sizeof attempt_columns[0])

bool transfer_can_task(const struct task *t)
{
    return t->status != TASK_STATUS_UNKNOWN && !strchr(t->tag, TASK_TAG_NUL) &&
           !(t->key && strchr(t->key, TASK_TAG_NUL)) && t->id <= INT64_MAX &&
           t->version <= INT64_MAX;
}

bool transfer_can_attempt(const struct task_attempt *a)
{
    return a->outcome >= 0 && a->version <= INT64_MAX;
}

/* ---- writing: what is null is left out */

/* `{"id":1,...`, without the closing brace. */
static void put_members(struct buf *b, const struct column *columns, size_t count, const void *row)
{
    static const struct cell_style style = {.utc = true};

    buf_chr(b, '{');
    for (size_t i = 0; i < count; i++) {
        struct cell cell = {.kind = CELL_NULL};
        if (columns[i].flags & COLUMN_MOVES)
            cell_set_field(&cell, &columns[i], row);
        if (cell.kind != CELL_NULL)
            cell_put_json(b, &style, columns[i].name, &cell);
    }
}

void transfer_put_task(struct buf *b, const struct task *t)
{
    put_members(b, task_columns, task_column_total, t);
}

void transfer_put_output(struct buf *b, const void *output, size_t size)
{
    buf_chr(b, ',');
    json_put_bytes(b, "output", output, size);
}

void transfer_put_attempt(struct buf *b, const struct task_attempt *a)
{
    put_members(b, attempt_columns, ATTEMPT_COLUMNS, a);
    buf_chr(b, '}');
}

void transfer_put_begin(struct buf *b, uint64_t next_id)
{
    buf_printf(b, BEGIN_BEGIN "true,\"next_id\":%" PRIu64 "}", next_id);
}

void transfer_put_end(struct buf *b, const struct transfer_end *e)
{
    buf_printf(b, END_BEGIN "true,\"tasks\":%" PRIu64 ",\"attempts\":%" PRIu64 "}", e->tasks,
               e->attempts);
}

/* ---- reading */

static bool begins_with(const char *line, size_t len, const char *text)
{
    return len > strlen(text) && !memcmp(line, text, strlen(text));
}

bool transfer_is_begin(const char *line, size_t len)
{
    return begins_with(line, len, BEGIN_BEGIN);
}

bool transfer_is_attempt(const char *line, size_t len)
{
    return begins_with(line, len, ATTEMPT_BEGIN);
}

bool transfer_is_end(const char *line, size_t len)
{
    return begins_with(line, len, END_BEGIN);
}

/* "2026-11-21T09:00:00.250Z", as when_format_utc writes it. */
static int read_time(const char *name, const struct json_value *v, int64_t *ret, struct err *err)
{
    char sql[sizeof "2026-11-21 09:00:00.250Z"];

    if (v->len == sizeof sql - 1 && v->text[10] == 'T' && v->text[v->len - 1] == 'Z') {
        memcpy(sql, v->text, sizeof sql);
        sql[10] = ' ';
        sql[sizeof sql - 2] = '\0';
        if (when_parse_sql(sql, ret, NULL) == 0)
            return 0;
    }
    return err_set(err, ERR_DATA, "\"%s\" \"%.40s\" is not a time like 2026-11-21T09:00:00.250Z",
                   name, v->text);
}

/* Whether it fits into its column; a reader of JSON returns valid UTF-8. */
static int read_name(const char *name, const struct json_value *v, size_t most, char **ret,
                     struct err *err)
{
    size_t chars = 0;

    json_utf8_valid(v->text, v->len, &chars, NULL);
    if (chars > most)
        return err_set(err, ERR_DATA, "a %s may have at most %zu characters, this one has %zu",
                       name, most, chars);
    *ret = mem_strdup(v->text);
    return 0;
}

static int read_status(const struct json_value *v, int *ret, struct err *err)
{
    *ret = task_status_parse(v->text);
    if (*ret < 0 || *ret == TASK_STATUS_UNKNOWN || *ret == TASK_RUNNING)
        return err_set(
            err, ERR_DATA,
            "\"status\" \"%.20s\" is none of pending, done, failed and cancelled: no dqd would own a running task",
            v->text);
    return 0;
}

static int read_level(const struct json_value *v, int *ret, struct err *err)
{
    *ret = task_level_parse(v->text);
    return *ret < 0 ? err_set(err, ERR_DATA, "\"priority\" \"%.20s\" " TASK_LEVEL_RULE, v->text)
                    : 0;
}

static int read_outcome(const struct json_value *v, int *ret, struct err *err)
{
    *ret = task_outcome_parse(v->text);
    if (*ret < 0)
        return err_set(err, ERR_DATA, "\"outcome\" \"%.20s\" is not known", v->text);
    return 0;
}

static int read_token(const char *name, const struct json_value *v, unsigned char *ret,
                      struct err *err)
{
    if (v->len != TASK_TOKEN_SIZE)
        return err_set(err, ERR_DATA, "\"%s\" has %zu bytes, not %d", name, v->len,
                       TASK_TOKEN_SIZE);
    memcpy(ret, v->text, TASK_TOKEN_SIZE);
    ret[TASK_TOKEN_SIZE] = true;
    return 0;
}

/* What the column of a number in the table takes. */
static int read_number(const struct column *c, const struct json_value *v, void *row,
                       struct err *err)
{
    const int64_t least = c->type == COLUMN_ID || c->type == COLUMN_SIGNAL;
    const int64_t most = c->type == COLUMN_U32 || c->type == COLUMN_SOME ? UINT32_MAX
                         : !strcmp(c->name, "missed")                    ? INT32_MAX
                         : c->type == COLUMN_EXIT                        ? UINT16_MAX
                         : c->type == COLUMN_SIGNAL                      ? UINT8_MAX
                                                                         : INT64_MAX;

    if (v->number < least || v->number > most)
        return err_set(err, ERR_DATA, "\"%s\" %" PRId64 " is out of range: %" PRId64 " to %" PRId64,
                       c->name, v->number, least, most);
    column_set_number(c, row, (uint64_t)v->number);
    return 0;
}

static int read_member(const struct column *c, const struct json_value *v, void *row,
                       struct err *err)
{
    void *to = (char *)row + c->offset;

    switch (c->type) {
    case COLUMN_TAG:
        return read_name(c->name, v, TASK_TAG_MAX, to, err);
    case COLUMN_KEY:
        return read_name(c->name, v, TASK_KEY_MAX, to, err);
    case COLUMN_TEXT:
        *(char **)to = mem_strdup(v->text);
        return 0;
    case COLUMN_BYTES:
        *(void **)to = mem_dup(v->text, v->len);
        *(size_t *)(void *)((void **)to + 1) = v->len;
        return 0;
    case COLUMN_TOKEN:
        return read_token(c->name, v, to, err);
    case COLUMN_TIME:
    case COLUMN_DUE:
        return read_time(c->name, v, to, err);
    case COLUMN_STATUS:
        return read_status(v, to, err);
    case COLUMN_LEVEL:
        return read_level(v, to, err);
    case COLUMN_OUTCOME:
        return read_outcome(v, to, err);
    default:
        return read_number(c, v, row, err);
    }
}

static enum json_type json_type(enum column_type type)
{
    return type <= COLUMN_MS                              ? JSON_INT
           : type == COLUMN_BYTES || type == COLUMN_TOKEN ? JSON_BYTES
                                                          : JSON_TEXT;
}

/* Fills a row that is empty; what is missing in the line stays so. */
static int read_row(struct json_reader *r, const char *line, size_t len,
                    const struct column *columns, size_t count, void *row, struct err *err)
{
    struct json_member members[COLUMN_MOST] = {{.name = NULL}};
    struct json_value values[COLUMN_MOST];
    const struct column *of[COLUMN_MOST];
    size_t n = 0;

    for (size_t i = 0; i < count; i++) {
        const struct column *c = &columns[i];
        if (!(c->flags & COLUMN_MOVES))
            continue;
        members[n] = (struct json_member){c->name, json_type(c->type), c->flags == COLUMN_NEEDED};
        of[n++] = c;
    }
    int rc = json_read_object(r, line, len, members, n, values, err);
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = values[i].present ? read_member(of[i], &values[i], row, err) : 0;
    return rc;
}

int transfer_read_task(struct json_reader *r, const char *line, size_t len, struct task *ret,
                       struct err *err)
{
    task_init(ret);
    int rc = read_row(r, line, len, task_columns, task_column_total, ret, err);
    if (rc == 0 && !ret->body) {
        ret->body = mem_dup("", 0);
        ret->body_size = 0;
    }
    return rc;
}

int transfer_read_attempt(struct json_reader *r, const char *line, size_t len,
                          struct task_attempt *ret, struct err *err)
{
    *ret = (struct task_attempt){.start_at = TASK_TIME_NONE, .exit_code = -1};
    return read_row(r, line, len, attempt_columns, ATTEMPT_COLUMNS, ret, err);
}

int transfer_read_begin(struct json_reader *r, const char *line, size_t len, uint64_t *ret_next_id,
                        struct err *err)
{
    static const struct json_member members[] = {{"begin", JSON_BOOL, true},
                                                 {"next_id", JSON_INT, true}};
    struct json_value v[2];
    int rc = json_read_object(r, line, len, members, 2, v, err);

    if (rc == 0)
        *ret_next_id = (uint64_t)v[1].number;
    return rc;
}

int transfer_read_end(struct json_reader *r, const char *line, size_t len, struct transfer_end *ret,
                      struct err *err)
{
    static const struct json_member members[] = {
        {"end", JSON_BOOL, true}, {"tasks", JSON_INT, true}, {"attempts", JSON_INT, true}};
    struct json_value v[3];
    int rc = json_read_object(r, line, len, members, 3, v, err);

    if (rc == 0)
        *ret = (struct transfer_end){(uint64_t)v[1].number, (uint64_t)v[2].number};
    return rc;
}
