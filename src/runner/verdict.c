/*
 * verdict.c - parses the lines of answers.
 *
 * Invariant: a line is either a valid verdict or none. Only the task that an unreadable line may be
 * about is guessed, because a wrong "done" would lose a task.
 */
#include "runner/verdict.h"

#include "base/when_parse.h"

#include <string.h>
#include <sys/param.h>

enum { M_ID, M_RESULT, M_AFTER, M_HOLD, M_ERROR, M_COUNT };
static const struct json_member members[M_COUNT] = {
    [M_ID] = {"id", JSON_INT, false},        [M_RESULT] = {"result", JSON_TEXT, true},
    [M_AFTER] = {"after", JSON_TEXT, false}, [M_HOLD] = {"hold", JSON_TEXT, false},
    [M_ERROR] = {"error", JSON_TEXT, false},
};
static const char *const results[] = {
    [VERDICT_DONE] = "done",
    [VERDICT_RETRY] = "retry",
    [VERDICT_FAIL] = "fail",
    [VERDICT_SNOOZE] = "snooze",
};

/* A hold gives the attempt back, as a snooze does. */
static int take_hold(const struct json_value *hold, struct verdict *out, struct err *err)
{
    if (out->result != VERDICT_RETRY)
        return err_set(err, ERR_DATA, "\"hold\" is allowed only with \"retry\"");
    int rc = when_parse_duration(hold->text, &out->hold_ms, err);
    if (rc)
        return rc;
    if (out->hold_ms < 1 || out->hold_ms > VERDICT_HOLD_MOST_MS)
        return err_set(err, ERR_DATA, "\"hold\" goes from 1ms to 1d");
    out->result = VERDICT_SNOOZE;
    return 0;
}

int verdict_parse(struct json_reader *r, const char *line, size_t len, struct verdict *ret,
                  struct err *err)
{
    struct json_value v[M_COUNT];
    struct verdict out = {.after_ms = -1};
    int rc = json_read_object(r, line, len, members, M_COUNT, v, err);

    if (rc)
        return rc;
    if (v[M_ID].present && v[M_ID].number < 0) /* 0 is that of a rehearsal without a task */
        return err_set(err, ERR_DATA, "\"id\" is not the number of a task");
    out.named = v[M_ID].present;
    if (out.named)
        out.id = (uint64_t)v[M_ID].number;
    size_t i = 0;
    while (i < sizeof results / sizeof results[0] && strcmp(v[M_RESULT].text, results[i]) != 0)
        i++;
    if (i == sizeof results / sizeof results[0])
        return err_set(err, ERR_DATA,
                       "\"result\" is neither \"done\" nor \"retry\" nor \"fail\" nor \"snooze\"");
    out.result = (enum verdict_result)i;
    if (v[M_AFTER].present) {
        if (out.result != VERDICT_RETRY && out.result != VERDICT_SNOOZE)
            return err_set(err, ERR_DATA,
                           "\"after\" is allowed only with \"retry\" and \"snooze\"");
        rc = when_parse_duration(v[M_AFTER].text, &out.after_ms, err);
        if (rc)
            return rc;
        if (out.after_ms > VERDICT_AFTER_MOST_MS)
            return err_set(err, ERR_DATA, "\"after\" is above 366d");
    } else if (out.result == VERDICT_SNOOZE) {
        return err_set(err, ERR_DATA, "\"snooze\" needs \"after\"");
    }
    if (v[M_HOLD].present && (rc = take_hold(&v[M_HOLD], &out, err)) < 0)
        return rc;
    if (out.result == VERDICT_SNOOZE)
        out.after_ms = MAX(out.after_ms, VERDICT_SNOOZE_LEAST_MS);
    out.error = v[M_ERROR].present ? v[M_ERROR].text : NULL;
    *ret = out;
    return 0;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\0';
}

static size_t skip_blanks(const char *line, size_t len, size_t at)
{
    while (at < len && is_blank(line[at]))
        at++;
    return at;
}

bool verdict_is_meant(const char *line, size_t len)
{
    /* byte order marks of UTF-8 and UTF-16 */
    static const char *const marks[] = {"\xef\xbb\xbf", "\xff\xfe", "\xfe\xff"};
    size_t at = 0;

    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++)
        if (len >= strlen(marks[i]) && memcmp(line, marks[i], strlen(marks[i])) == 0)
            at = strlen(marks[i]);
    at = skip_blanks(line, len, at);
    return at < len && line[at] == '{';
}

/* The number after the colon at `at`; 0: there is none. */
static uint64_t number_after(const char *line, size_t len, size_t at)
{
    uint64_t n = 0;

    at = skip_blanks(line, len, at);
    if (at == len || line[at] != ':')
        return 0;
    at = skip_blanks(line, len, at + 1);
    if (at < len && (line[at] == '"' || line[at] == '\''))
        at++;
    for (; at < len && line[at] >= '0' && line[at] <= '9'; at++) {
        uint64_t digit = (uint64_t)(line[at] - '0');
        if (n > (UINT64_MAX - digit) / 10)
            return 0;
        n = n * 10 + digit;
    }
    return n;
}

uint64_t verdict_next_id(const char *line, size_t len, size_t *at)
{
    for (size_t i = *at; i + 4 <= len; i++) {
        if ((line[i] != '"' && line[i] != '\'') || line[i + 1] != 'i' || line[i + 2] != 'd' ||
            line[i + 3] != line[i])
            continue;
        uint64_t id = number_after(line, len, i + 4);
        *at = i + 4;
        if (id)
            return id;
    }
    *at = len;
    return 0;
}
