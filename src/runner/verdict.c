/*
 * verdict.c - reads the verdict lines of batch handlers.
 *
 * Invariant: a line either is a verdict to the letter or is none; nothing is guessed, for a wrong "done" loses a task.
 */
#include "runner/verdict.h"

#include "base/when.h"

#include <string.h>

enum { M_ID, M_RESULT, M_AFTER, M_ERROR, M_COUNT };
static const struct json_member members[M_COUNT] = {
    [M_ID] = {"id", JSON_INT, true},
    [M_RESULT] = {"result", JSON_TEXT, true},
    [M_AFTER] = {"after", JSON_TEXT, false},
    [M_ERROR] = {"error", JSON_TEXT, false},
};
static const char *const results[] = {[VERDICT_DONE] = "done", [VERDICT_RETRY] = "retry", [VERDICT_FAIL] = "fail"};

int verdict_parse(struct json_reader *r, const char *line, size_t len, struct verdict *ret, struct err *err)
{
    struct json_value v[M_COUNT];
    struct verdict out = {.after_ms = -1};
    int rc = json_read_object(r, line, len, members, M_COUNT, v, err);

    if (rc)
        return rc;
    if (v[M_ID].number <= 0)
        return err_set(err, ERR_DATA, "\"id\" is not the number of a task");
    out.id = (uint64_t)v[M_ID].number;
    size_t i = 0;
    while (i < sizeof results / sizeof results[0] && strcmp(v[M_RESULT].text, results[i]) != 0)
        i++;
    if (i == sizeof results / sizeof results[0])
        return err_set(err, ERR_DATA, "\"result\" is neither \"done\" nor \"retry\" nor \"fail\"");
    out.result = (enum verdict_result)i;
    if (v[M_AFTER].present) {
        if (out.result != VERDICT_RETRY)
            return err_set(err, ERR_DATA, "\"after\" goes only with \"retry\"");
        rc = when_parse_duration(v[M_AFTER].text, &out.after_ms, err);
        if (rc)
            return rc;
    }
    out.error = v[M_ERROR].present ? v[M_ERROR].text : NULL;
    *ret = out;
    return 0;
}
