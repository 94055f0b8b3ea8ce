/*
 * answer.c - reads the answers of handlers.
 *
 * Invariant: a task is done only if a valid verdict says so, or if its process exited with status 0
 * and wrote nothing that could have been meant as another verdict on that task. Unreadable lines
 * count only at the end: a valid verdict that follows one overrides it.
 */
#include "runner/answer.h"

#include "base/mem.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define QUOTED_MAX 200 /* columns of a line that a message quotes */
#define TOO_LONG "longer than " TEXT_OF(CAPTURE_LINE_MAX) " bytes"

/* The tasks of a job, ascending by id. */
struct job_id {
    uint64_t id;
    uint32_t at;
};

static int compare_ids(const void *a, const void *b)
{
    const struct job_id *x = a, *y = b;
    return x->id < y->id ? -1 : x->id > y->id;
}

static uint32_t find_task(struct job *j, uint64_t id)
{
    const struct job_id key = {.id = id}, *found;

    if (!j->by_id) {
        j->by_id = mem_alloc(j->order.count * sizeof *j->by_id);
        for (uint32_t i = 0; i < j->order.count; i++)
            j->by_id[i] = (struct job_id){.id = j->ids[i], .at = i};
        qsort(j->by_id, j->order.count, sizeof *j->by_id, compare_ids);
    }
    found = bsearch(&key, j->by_id, j->order.count, sizeof *j->by_id, compare_ids);
    return found ? found->at : j->order.count;
}

/* Whether the line names a task of this job. *ret is the one that it names; j->order.count: it
 * names none, or several. */
static bool find_named(struct job *j, const char *line, size_t len, uint32_t *ret)
{
    const uint32_t none = j->order.count;
    uint64_t id;

    *ret = none;
    for (size_t at = 0; (id = verdict_next_id(line, len, &at)) != 0;) {
        uint32_t i = find_task(j, id);
        if (i < none && *ret < none && i != *ret) {
            *ret = none;
            return true;
        }
        if (i < none)
            *ret = i;
    }
    return *ret < none;
}

static char *describe(const char *line, size_t len, const char *why)
{
    struct buf b = BUF_INIT;

    buf_printf(&b, "unreadable answer (%s): ", why);
    text_escape(&b, line, len, QUOTED_MAX);
    return buf_take(&b);
}

/* Keeps the first such line of each task i, and the first that names none or several. */
static void note_unreadable(struct job *j, uint32_t i, const char *line, size_t len,
                            const char *why)
{
    if (i == j->order.count) {
        if (!j->unread_any)
            j->unread_any = describe(line, len, why);
        return;
    }
    if (!j->unread)
        j->unread = mem_zero(j->order.count, sizeof *j->unread);
    if (!j->unread[i])
        j->unread[i] = describe(line, len, why);
}

/* False: it is not a verdict on a task of this job; err says why. */
static bool take_verdict(struct job *j, struct json_reader *json, const char *line, size_t len,
                         struct verdict *ret, struct err *err)
{
    if (verdict_parse(json, line, len, ret, err) != 0)
        return false;
    if (!ret->named) {
        err_set(err, ERR_DATA, "\"id\" is missing");
        return false;
    }
    uint32_t i = find_task(j, ret->id);
    if (i == j->order.count) {
        err_set(err, ERR_DATA, "%" PRIu64 " is not a task of this process", ret->id);
        return false;
    }
    if (j->reported[i]) {
        err_set(err, ERR_DATA, "the task already has a verdict");
        return false;
    }
    j->reported[i] = true;
    j->open--;
    return true;
}

/* The answer of a single task: the last line counts. */
static void keep_answer(struct job *j, struct json_reader *json, const char *line, size_t len,
                        bool whole)
{
    struct err why = {0};
    struct verdict v;

    j->answered = whole && verdict_parse(json, line, len, &v, &why) == 0;
    if (j->answered && v.named && v.id != j->ids[0]) {
        err_set(&why, ERR_DATA, "%" PRIu64 " is not the task of this process", v.id);
        j->answered = false;
    }
    if (!j->answered) {
        if (!j->unread_any)
            j->unread_any = describe(line, len, whole ? why.text : TOO_LONG);
        return;
    }
    free(j->unread_any);
    free((char *)j->answer.error);
    j->unread_any = NULL;
    j->answer = v;
    j->answer.error = mem_strdup(v.error);
}

/* From now on stdout is output. */
static void begin_reply(struct job *j)
{
    for (uint32_t i = 0; j->unread && i < j->order.count; i++) {
        free(j->unread[i]);
        j->unread[i] = NULL;
    }
    free(j->unread_any);
    j->unread_any = NULL;
    j->replied = true;
}

bool answer_line(struct job *j, struct json_reader *json, const char *line, size_t len, bool whole,
                 bool reply, struct verdict *ret)
{
    struct err why = {0};
    uint32_t named;

    if (reply && !len)
        return false;
    if (reply && !j->replied)
        begin_reply(j);
    if (reply && !j->plan->contract->verdicts) {
        keep_answer(j, json, line, len, whole);
        return false;
    }
    if (reply == j->replied) {
        if (whole && len && take_verdict(j, json, line, len, ret, &why))
            return true;
        if (find_named(j, line, len, &named) || reply || verdict_is_meant(line, len))
            note_unreadable(j, named, line, len, whole ? why.text : TOO_LONG);
    }
    if (!reply) {
        capture_add(&j->tail, line, len);
        capture_add(&j->tail, "\n", 1);
    }
    return false;
}

const char *answer_fault(const struct job *j, uint32_t i)
{
    return j->unread && j->unread[i] ? j->unread[i] : j->unread_any;
}
