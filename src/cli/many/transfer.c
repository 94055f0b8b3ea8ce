/*
 * transfer.c - see transfer.h. Invariant: what is written is read back the same.
 */
#include "cli/many/transfer.h"

#include "base/mem.h"
#include "base/when.h"
#include "base/when_parse.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#define ATTEMPT_BEGIN "{\"task\":"
#define END_BEGIN "{\"end\":"

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

static void put_text(struct buf *b, const char *name, const char *text)
{
    if (!text)
        return;
    buf_printf(b, ",\"%s\":", name);
    json_put_string(b, text, strlen(text));
}

static void put_time(struct buf *b, const char *name, int64_t at)
{
    char text[WHEN_TEXT_SIZE];

    if (at != TASK_TIME_NONE)
        buf_printf(b, ",\"%s\":\"%s\"", name, when_format_utc(text, at));
}

static void put_bytes(struct buf *b, const char *name, const void *p, size_t size)
{
    buf_chr(b, ',');
    json_put_bytes(b, name, p, size);
}

static void put_owner(struct buf *b, const char *host, uint32_t pid)
{
    put_text(b, "host", host);
    if (host)
        buf_printf(b, ",\"pid\":%" PRIu32, pid);
}

static void put_end(struct buf *b, int exit_code, int signal_number, const char *error)
{
    if (exit_code >= 0)
        buf_printf(b, ",\"exit\":%d", exit_code);
    if (signal_number > 0)
        buf_printf(b, ",\"signal\":%d", signal_number);
    put_text(b, "error", error);
}

void transfer_put_task(struct buf *b, const struct task *t)
{
    buf_printf(b, "{\"id\":%" PRIu64, t->id);
    put_text(b, "tag", t->tag);
    put_text(b, "key", t->key);
    buf_printf(b, ",\"status\":\"%s\",\"version\":%" PRIu64 ",\"attempt\":%" PRIu32,
               task_status_name(t->status), t->version, t->attempt);
    if (t->max_attempts)
        buf_printf(b, ",\"max_attempts\":%" PRIu32, t->max_attempts);
    buf_printf(b, ",\"delay\":%" PRId64, t->delay_ms);
    put_time(b, "expected", t->expected_at);
    put_time(b, "started", t->execution_at);
    put_time(b, "finished", t->finish_at);
    put_time(b, "created", t->create_at);
    put_time(b, "updated", t->update_at);
    put_owner(b, t->host, t->pid);
    if (t->claimed)
        put_bytes(b, "claim", t->claim_token, TASK_TOKEN_SIZE);
    put_end(b, t->exit_code, t->signal, t->error);
    put_bytes(b, "body", t->body, t->body ? t->body_size : 0);
}

void transfer_put_output(struct buf *b, const void *output, size_t size)
{
    put_bytes(b, "output", output, size);
}

void transfer_put_attempt(struct buf *b, const struct task_attempt *a)
{
    buf_printf(b, ATTEMPT_BEGIN "%" PRIu64 ",\"version\":%" PRIu64 ",\"attempt\":%" PRIu32,
               a->task_id, a->version, a->attempt);
    put_time(b, "started", a->start_at);
    put_time(b, "finished", a->finish_at);
    put_text(b, "outcome", task_outcome_name(a->outcome));
    put_owner(b, a->host, a->pid);
    put_end(b, a->exit_code, a->signal, a->error);
    if (a->output)
        put_bytes(b, "output", a->output, a->output_size);
    buf_chr(b, '}');
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

bool transfer_is_attempt(const char *line, size_t len)
{
    return begins_with(line, len, ATTEMPT_BEGIN);
}

bool transfer_is_end(const char *line, size_t len)
{
    return begins_with(line, len, END_BEGIN);
}

/* A number that is not there is `none`. */
static int get_number(const struct json_member *m, const struct json_value *v, int64_t least,
                      int64_t most, int64_t none, int64_t *ret, struct err *err)
{
    if (v->present && (v->number < least || v->number > most))
        return err_set(err, ERR_DATA, "\"%s\" %" PRId64 " is out of range: %" PRId64 " to %" PRId64,
                       m->name, v->number, least, most);
    *ret = v->present ? v->number : none;
    return 0;
}

/* "2026-11-21T09:00:00.250Z", as when_format_utc writes it. */
static int get_time(const struct json_member *m, const struct json_value *v, int64_t *ret,
                    struct err *err)
{
    char sql[sizeof "2026-11-21 09:00:00.250Z"];

    *ret = TASK_TIME_NONE;
    if (!v->present)
        return 0;
    if (v->len == sizeof sql - 1 && v->text[10] == 'T' && v->text[v->len - 1] == 'Z') {
        memcpy(sql, v->text, sizeof sql);
        sql[10] = ' ';
        sql[sizeof sql - 2] = '\0';
        if (when_parse_sql(sql, ret, NULL) == 0)
            return 0;
    }
    return err_set(err, ERR_DATA, "\"%s\" \"%.40s\" is not a time like 2026-11-21T09:00:00.250Z",
                   m->name, v->text);
}

static char *get_text(const struct json_value *v)
{
    return v->present ? mem_strdup(v->text) : NULL;
}

enum task_member {
    T_ID,
    T_TAG,
    T_KEY,
    T_STATUS,
    T_VERSION,
    T_ATTEMPT,
    T_MAX_ATTEMPTS,
    T_DELAY,
    T_EXPECTED,
    T_STARTED,
    T_FINISHED,
    T_CREATED,
    T_UPDATED,
    T_HOST,
    T_PID,
    T_CLAIM,
    T_EXIT,
    T_SIGNAL,
    T_ERROR,
    T_BODY,
    T_OUTPUT,
    T_COUNT
};

/* clang-format off */
static const struct json_member task_members[T_COUNT] = {
    [T_ID] = {"id", JSON_INT, true}, [T_TAG] = {"tag", JSON_TEXT, true},
    [T_KEY] = {"key", JSON_TEXT, false}, [T_STATUS] = {"status", JSON_TEXT, true},
    [T_VERSION] = {"version", JSON_INT, false}, [T_ATTEMPT] = {"attempt", JSON_INT, false},
    [T_MAX_ATTEMPTS] = {"max_attempts", JSON_INT, false}, [T_DELAY] = {"delay", JSON_INT, false},
    [T_EXPECTED] = {"expected", JSON_TEXT, true}, [T_STARTED] = {"started", JSON_TEXT, false},
    [T_FINISHED] = {"finished", JSON_TEXT, false}, [T_CREATED] = {"created", JSON_TEXT, true},
    [T_UPDATED] = {"updated", JSON_TEXT, false}, [T_HOST] = {"host", JSON_TEXT, false},
    [T_PID] = {"pid", JSON_INT, false}, [T_CLAIM] = {"claim", JSON_BYTES, false},
    [T_EXIT] = {"exit", JSON_INT, false}, [T_SIGNAL] = {"signal", JSON_INT, false},
    [T_ERROR] = {"error", JSON_TEXT, false}, [T_BODY] = {"body", JSON_BYTES, false},
    [T_OUTPUT] = {"output", JSON_BYTES, false},
};
/* clang-format on */

static int get_status(const struct json_value *v, int *ret, struct err *err)
{
    *ret = task_status_parse(v->text);
    if (*ret < 0 || *ret == TASK_STATUS_UNKNOWN || *ret == TASK_RUNNING)
        return err_set(
            err, ERR_DATA,
            "\"status\" \"%.20s\" is none of pending, done, failed and cancelled: no dqd would own a running task",
            v->text);
    return 0;
}

static int get_task_numbers(const struct json_value *v, struct task *t, struct err *err)
{
    const struct {
        enum task_member member;
        int64_t least, most, none;
    } numbers[] = {
        {T_ID, 1, INT64_MAX, 0},       {T_VERSION, 0, INT64_MAX, 0},
        {T_ATTEMPT, 0, UINT32_MAX, 0}, {T_MAX_ATTEMPTS, 1, UINT32_MAX, 0},
        {T_DELAY, 0, INT64_MAX, 0},    {T_PID, 0, UINT32_MAX, 0},
        {T_EXIT, 0, UINT16_MAX, -1},   {T_SIGNAL, 1, UINT8_MAX, 0},
    };
    int64_t n[T_COUNT] = {0};

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        enum task_member m = numbers[i].member;
        if (get_number(&task_members[m], &v[m], numbers[i].least, numbers[i].most, numbers[i].none,
                       &n[m], err) < 0)
            return ERR_DATA;
    }
    t->id = (uint64_t)n[T_ID];
    t->version = (uint64_t)n[T_VERSION];
    t->attempt = (uint32_t)n[T_ATTEMPT];
    t->max_attempts = (uint32_t)n[T_MAX_ATTEMPTS];
    t->delay_ms = n[T_DELAY];
    t->pid = (uint32_t)n[T_PID];
    t->exit_code = (int)n[T_EXIT];
    t->signal = (int)n[T_SIGNAL];
    return 0;
}

static int get_task_times(const struct json_value *v, struct task *t, struct err *err)
{
    const struct {
        enum task_member member;
        int64_t *to;
    } times[] = {{T_EXPECTED, &t->expected_at},
                 {T_STARTED, &t->execution_at},
                 {T_FINISHED, &t->finish_at},
                 {T_CREATED, &t->create_at},
                 {T_UPDATED, &t->update_at}};

    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
        if (get_time(&task_members[times[i].member], &v[times[i].member], times[i].to, err) < 0)
            return ERR_DATA;
    return 0;
}

/* Whether it fits into its column; a reader of JSON returns valid UTF-8. */
static int check_name(const struct json_member *m, const struct json_value *v, size_t most,
                      struct err *err)
{
    size_t chars = 0;

    if (v->present)
        json_utf8_valid(v->text, v->len, &chars, NULL);
    if (chars > most)
        return err_set(err, ERR_DATA, "a %s may have at most %zu characters, this one has %zu",
                       m->name, most, chars);
    return 0;
}

int transfer_read_task(struct json_reader *r, const char *line, size_t len, struct task *ret,
                       struct err *err)
{
    struct json_value v[T_COUNT];

    task_init(ret);
    int rc = json_read_object(r, line, len, task_members, T_COUNT, v, err);
    if (rc == 0)
        rc = check_name(&task_members[T_TAG], &v[T_TAG], TASK_TAG_MAX, err);
    if (rc == 0)
        rc = check_name(&task_members[T_KEY], &v[T_KEY], TASK_KEY_MAX, err);
    if (rc == 0)
        rc = get_status(&v[T_STATUS], &ret->status, err);
    if (rc == 0)
        rc = get_task_numbers(v, ret, err);
    if (rc == 0)
        rc = get_task_times(v, ret, err);
    if (rc == 0 && v[T_CLAIM].present && v[T_CLAIM].len != TASK_TOKEN_SIZE)
        rc = err_set(err, ERR_DATA, "\"claim\" has %zu bytes, not %d", v[T_CLAIM].len,
                     TASK_TOKEN_SIZE);
    if (rc < 0)
        return rc;
    ret->tag = get_text(&v[T_TAG]);
    ret->key = get_text(&v[T_KEY]);
    ret->host = get_text(&v[T_HOST]);
    ret->error = get_text(&v[T_ERROR]);
    ret->claimed = v[T_CLAIM].present;
    if (ret->claimed)
        memcpy(ret->claim_token, v[T_CLAIM].text, TASK_TOKEN_SIZE);
    ret->body_size = v[T_BODY].present ? v[T_BODY].len : 0;
    ret->body = mem_dup(v[T_BODY].present ? v[T_BODY].text : "", ret->body_size);
    ret->output_size = v[T_OUTPUT].present ? v[T_OUTPUT].len : 0;
    ret->output = v[T_OUTPUT].present ? mem_dup(v[T_OUTPUT].text, ret->output_size) : NULL;
    return 0;
}

enum attempt_member {
    A_TASK,
    A_VERSION,
    A_ATTEMPT,
    A_STARTED,
    A_FINISHED,
    A_OUTCOME,
    A_HOST,
    A_PID,
    A_EXIT,
    A_SIGNAL,
    A_ERROR,
    A_OUTPUT,
    A_COUNT
};

/* clang-format off */
static const struct json_member attempt_members[A_COUNT] = {
    [A_TASK] = {"task", JSON_INT, true}, [A_VERSION] = {"version", JSON_INT, true},
    [A_ATTEMPT] = {"attempt", JSON_INT, true}, [A_STARTED] = {"started", JSON_TEXT, false},
    [A_FINISHED] = {"finished", JSON_TEXT, true}, [A_OUTCOME] = {"outcome", JSON_TEXT, true},
    [A_HOST] = {"host", JSON_TEXT, false}, [A_PID] = {"pid", JSON_INT, false},
    [A_EXIT] = {"exit", JSON_INT, false}, [A_SIGNAL] = {"signal", JSON_INT, false},
    [A_ERROR] = {"error", JSON_TEXT, false}, [A_OUTPUT] = {"output", JSON_BYTES, false},
};
/* clang-format on */

static int get_attempt_numbers(const struct json_value *v, struct task_attempt *a, struct err *err)
{
    const struct {
        enum attempt_member member;
        int64_t least, most, none;
    } numbers[] = {
        {A_TASK, 1, INT64_MAX, 0}, {A_VERSION, 0, INT64_MAX, 0}, {A_ATTEMPT, 0, UINT32_MAX, 0},
        {A_PID, 0, UINT32_MAX, 0}, {A_EXIT, 0, UINT16_MAX, -1},  {A_SIGNAL, 1, UINT8_MAX, 0},
    };
    int64_t n[A_COUNT];

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        enum attempt_member m = numbers[i].member;
        if (get_number(&attempt_members[m], &v[m], numbers[i].least, numbers[i].most,
                       numbers[i].none, &n[m], err) < 0)
            return ERR_DATA;
    }
    a->task_id = (uint64_t)n[A_TASK];
    a->version = (uint64_t)n[A_VERSION];
    a->attempt = (uint32_t)n[A_ATTEMPT];
    a->pid = (uint32_t)n[A_PID];
    a->exit_code = (int)n[A_EXIT];
    a->signal = (int)n[A_SIGNAL];
    return 0;
}

int transfer_read_attempt(struct json_reader *r, const char *line, size_t len,
                          struct task_attempt *ret, struct err *err)
{
    struct json_value v[A_COUNT];

    *ret = (struct task_attempt){.outcome = -1};
    int rc = json_read_object(r, line, len, attempt_members, A_COUNT, v, err);
    if (rc == 0)
        rc = get_attempt_numbers(v, ret, err);
    if (rc == 0)
        rc = get_time(&attempt_members[A_STARTED], &v[A_STARTED], &ret->start_at, err);
    if (rc == 0)
        rc = get_time(&attempt_members[A_FINISHED], &v[A_FINISHED], &ret->finish_at, err);
    if (rc == 0 && (ret->outcome = task_outcome_parse(v[A_OUTCOME].text)) < 0)
        rc = err_set(err, ERR_DATA, "\"outcome\" \"%.20s\" is not known", v[A_OUTCOME].text);
    if (rc < 0)
        return rc;
    ret->host = get_text(&v[A_HOST]);
    ret->error = get_text(&v[A_ERROR]);
    ret->output_size = v[A_OUTPUT].present ? v[A_OUTPUT].len : 0;
    ret->output = v[A_OUTPUT].present ? mem_dup(v[A_OUTPUT].text, ret->output_size) : NULL;
    return 0;
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
