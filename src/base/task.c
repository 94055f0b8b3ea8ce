/*
 * task.c - the states of a task and the ways between them.
 *
 * Invariant: the tables here are the only place that knows which event leads from which state to
 * which, and what the names are.
 */
#include "base/task.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

static const char *const task_status_names[TASK_STATUS_COUNT] = {
    [TASK_PENDING] = "pending", [TASK_DONE] = "done",           [TASK_FAILED] = "failed",
    [TASK_RUNNING] = "running", [TASK_CANCELLED] = "cancelled",
};

const enum task_level task_levels[TASK_LEVELS] = {TASK_HIGH, TASK_NORMAL, TASK_LOW};
const char *const task_level_names[TASK_LEVELS + 1] = {
    [TASK_NORMAL] = "normal", [TASK_HIGH] = "high", [TASK_LOW] = "low"};

static const char *const task_outcome_names[OUTCOME_COUNT] = {
    [OUTCOME_DONE] = "done",
    [OUTCOME_EXIT] = "exit",
    [OUTCOME_SIGNAL] = "signal",
    [OUTCOME_TIMEOUT] = "timeout",
    [OUTCOME_LEASE_EXPIRED] = "lease-expired",
    [OUTCOME_RUNNER_DIED] = "runner-died",
    [OUTCOME_CANCELLED] = "cancelled",
    [OUTCOME_RELEASED] = "released",
    [OUTCOME_VERDICT] = "verdict",
    [OUTCOME_KILLED] = "killed",
    [OUTCOME_SNOOZED] = "snoozed",
};

#define PENDING TASK_BIT(TASK_PENDING)
#define RUNNING TASK_BIT(TASK_RUNNING)

/* Fields that are not given keep the attempt and the due time. */
/* clang-format off */
static const struct task_transition task_transitions[TASK_EVENT_COUNT] = {
    [TASK_CLAIM] = {TASK_CLAIM, PENDING, TASK_RUNNING, .attempt_change = +1},
    [TASK_SUCCEED] = {TASK_SUCCEED, RUNNING, TASK_DONE, .history = HISTORY_OPTIONAL},
    [TASK_TRY_LATER] = {TASK_TRY_LATER, RUNNING, TASK_PENDING, .due = DUE_RETRIED, .history = HISTORY_ALWAYS},
    [TASK_SNOOZE] = {TASK_SNOOZE, RUNNING, TASK_PENDING, .attempt_change = -1, .keeps_first = true,
                   .due = DUE_RETRIED, .history = HISTORY_OPTIONAL},
    [TASK_GIVE_UP] = {TASK_GIVE_UP, RUNNING, TASK_FAILED, .history = HISTORY_ALWAYS},
    [TASK_AGAIN] = {TASK_AGAIN, RUNNING, TASK_PENDING, .new_ladder = true, .due = DUE_GIVEN},
    [TASK_GIVE_BACK] = {TASK_GIVE_BACK, RUNNING, TASK_PENDING, .attempt_change = -1, .unstarted = true,
                      .history = HISTORY_IF_ERROR},
    [TASK_TAKE_BACK] = {TASK_TAKE_BACK, RUNNING, TASK_PENDING, .due = DUE_APART, .history = HISTORY_ALWAYS},
    [TASK_CANCEL] = {TASK_CANCEL, TASK_LIVE, TASK_CANCELLED, .history = HISTORY_ALWAYS},
    [TASK_EXPIRE] = {TASK_EXPIRE, PENDING, TASK_CANCELLED},
    [TASK_RETRY] = {TASK_RETRY, TASK_FINISHED, TASK_PENDING, .new_ladder = true, .due = DUE_GIVEN},
    [TASK_RESCHEDULE] = {TASK_RESCHEDULE, PENDING, TASK_PENDING, .due = DUE_GIVEN},
};
/* clang-format on */

static int name_index(const char *const *names, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(names[i], name))
            return i;
    return -1;
}

const char *task_status_name(int status)
{
    return status >= 0 && status < TASK_STATUS_COUNT ? task_status_names[status] : "unknown";
}

int task_status_parse(const char *name)
{
    if (!strcmp(name, "canceled"))
        return TASK_CANCELLED;
    if (!strcmp(name, "unknown"))
        return TASK_STATUS_UNKNOWN;
    return name_index(task_status_names, TASK_STATUS_COUNT, name);
}

int task_level_parse(const char *name)
{
    return name_index(task_level_names, TASK_LEVELS, name);
}

void task_levels_owed(unsigned levels, const size_t passed[TASK_LEVELS], size_t count,
                      size_t ret[TASK_LEVELS])
{
    bool above = false; /* the highest one is not owed anything */

    for (int i = 0; i < TASK_LEVELS; i++) {
        enum task_level level = task_levels[i];
        bool has = levels & TASK_LEVEL_BIT(level);

        ret[level] = has && above ? (passed[level] + count) / TASK_LEVEL_PART : 0;
        above |= has;
    }
}

bool task_countable(uint64_t version, uint32_t attempt)
{
    return version < TASK_VERSION_MOST && attempt < TASK_ATTEMPT_MOST;
}

const char *task_outcome_name(int outcome)
{
    return outcome >= 0 && outcome < OUTCOME_COUNT ? task_outcome_names[outcome] : "?";
}

int task_outcome_parse(const char *name)
{
    return name_index(task_outcome_names, OUTCOME_COUNT, name);
}

bool task_has_expired(int status, const char *error)
{
    return status == TASK_CANCELLED && error && !strncmp(error, TASK_EXPIRED, strlen(TASK_EXPIRED));
}

const struct task_transition *task_transition(enum task_event event)
{
    return &task_transitions[event];
}

void task_init(struct task *t)
{
    *t = (struct task){
        .body_size = SIZE_MAX,
        .lease_until_at = TASK_TIME_NONE,
        .expected_at = TASK_TIME_NONE,
        .execution_at = TASK_TIME_NONE,
        .finish_at = TASK_TIME_NONE,
        .exit_code = -1,
        .missed_slots = -1,
        .create_at = TASK_TIME_NONE,
        .update_at = TASK_TIME_NONE,
        .expires_at = TASK_TIME_NONE,
        .again_at = TASK_TIME_NONE,
        .late_from_at = TASK_TIME_NONE,
    };
}

void task_put_run_id(struct buf *b, uint64_t id, uint32_t run)
{
    buf_u64(b, id);
    if (!run)
        return;
    buf_chr(b, '-');
    buf_u64(b, run);
}

int64_t task_late_from(const struct task *t)
{
    bool given_back = t->host && t->execution_at == TASK_TIME_NONE;
    int64_t moved_at = t->status == TASK_PENDING && !given_back ? t->update_at : TASK_TIME_NONE;

    return MAX(MAX(t->expected_at, t->create_at), moved_at);
}

void task_done(struct task *t)
{
    free(t->tag);
    free(t->key);
    free(t->body);
    free(t->host);
    free(t->error);
    free(t->output);
    free(t->again_body);
    task_init(t);
}

/* What is wrong with a character wherever it stands in a tag, NULL: nothing. */
static const char *tag_fault(uint32_t c, bool glob)
{
    if (text_char_space(c))
        return "white space";
    if (text_char_hidden(c))
        return "invisible characters";
    if (c == '\'' || c == '"' || c == '`')
        return "quotes";
    if (c == '\\')
        return "backslashes";
    if (c == ',' || (!glob && (c == '*' || c == '?')))
        return glob ? "commas" : "commas or the wildcards * and ?";
    return NULL;
}

#define TAG_RULE                                                                                   \
    "; a tag has no white space, control or invisible characters, quotes, backslashes, commas, * or ?"
#define GLOB_RULE                                                                                  \
    "; a tag has no white space, control or invisible characters, quotes, backslashes or commas"

enum name_kind { NAME_TAG, NAME_GLOB, NAME_KEY };

static int check_name(enum name_kind kind, const char *s, size_t len, size_t max_chars,
                      struct err *err)
{
    static const char *const rules[] = {
        [NAME_TAG] = TAG_RULE, [NAME_GLOB] = GLOB_RULE, [NAME_KEY] = ""};
    const char *what = kind == NAME_KEY ? "key" : "tag";
    size_t chars = 0;

    if (!len)
        return err_set(err, ERR_DATA, "a %s must not be empty", what);
    for (size_t at = 0; at < len; chars++) {
        uint32_t c;
        size_t n = text_utf8_next(s + at, len - at, &c);
        if (!n)
            return err_set(err, ERR_DATA, "a %s must be valid UTF-8: byte %zu is not", what,
                           at + 1);
        const char *fault = kind == NAME_KEY ? NULL : tag_fault(c, kind == NAME_GLOB);
        if (c < 0x20 || (c >= 0x7f && c < 0xa0))
            fault = "control characters";
        if (fault)
            return err_set(err, ERR_DATA, "a %s must not contain %s: byte %zu is U+%04X%s", what,
                           fault, at + 1, c, rules[kind]);
        if (text_char_space(c) && (at == 0 || at + n == len))
            return err_set(err, ERR_DATA, "a %s must not %s with white space: byte %zu is U+%04X",
                           what, at ? "end" : "begin", at + 1, c);
        at += n;
    }
    if (chars > max_chars)
        return err_set(err, ERR_DATA, "a %s may have at most %zu characters, this one has %zu",
                       what, max_chars, chars);
    return 0;
}

static int check_tag(enum name_kind kind, const char *tag, size_t len, struct err *err)
{
    if (len && tag[0] == '-')
        return err_set(err, ERR_DATA, "a tag must not begin with \"-\" (byte 1)");
    return check_name(kind, tag, len, TASK_TAG_MAX, err);
}

int task_check_tag(const char *tag, size_t len, struct err *err)
{
    return check_tag(NAME_TAG, tag, len, err);
}

int task_check_tag_glob(const char *glob, size_t len, struct err *err)
{
    return check_tag(NAME_GLOB, glob, len, err);
}

int task_check_key(const char *key, size_t len, struct err *err)
{
    return check_name(NAME_KEY, key, len, TASK_KEY_MAX, err);
}

int task_check_wanted(const char *name, struct err *err)
{
    if (task_tag_length(name, strlen(name)) == strlen(name))
        return 0;
    return err_set(err, ERR_DATA,
                   "\"%.40s\" ends with a blank, which the database ignores; leave it out", name);
}

int task_check_tag_wanted(const char *glob, struct err *err)
{
    const char *comma = strchr(glob, ',');
    if (!comma)
        return task_check_wanted(glob, err);
    return err_set(
        err, ERR_DATA,
        "a comma does not separate tags; write --tag %.*s --tag %.40s, or ? for a comma that is part of a tag",
        (int)MIN(comma - glob, 40), glob, comma + 1);
}

char *task_tag_as_glob(const char *tag)
{
    char *glob = mem_strdup(tag);
    for (char *c = glob; (c = strpbrk(c, ",\n"));)
        *c = '?';
    return glob;
}

size_t task_tag_length(const char *tag, size_t len)
{
    while (len && tag[len - 1] == ' ')
        len--;
    return len;
}

bool task_same_name(const char *a, const char *b)
{
    size_t len = task_tag_length(a, strlen(a));

    return len == task_tag_length(b, strlen(b)) && !memcmp(a, b, len);
}

/* The next character of valid UTF-8. */
static const char *skip_char(const char *s)
{
    do
        s++;
    while (text_continues(*s));
    return s;
}

/* The pattern ends with its line. */
static bool matches(const char *pattern, const char *tag)
{
    const char *star = NULL, *resume = NULL;

    /* Only the last '*' need be reconsidered: what an earlier one could take, the last one can take
     * too. */
    while (*tag) {
        if (*pattern == '*') {
            star = ++pattern;
            resume = tag;
        } else if (*pattern == '?') {
            pattern++;
            tag = skip_char(tag);
        } else if (*pattern == *tag && *pattern != '\n') {
            pattern++;
            tag++;
        } else if (star) {
            pattern = star;
            tag = resume = skip_char(resume);
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    pattern += strspn(pattern, " ");
    return *pattern == '\0' || *pattern == '\n';
}

bool task_tag_glob(const char *globs, const char *tag)
{
    while (globs && !matches(globs, tag)) {
        globs += strcspn(globs, "\n");
        if (*globs++ == '\0')
            return false;
    }
    return true;
}
