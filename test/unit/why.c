/* Why a task does not run, decided from facts: every cause alone, together, and what is not one. */
#include "base/buf.h"
#include "base/task.h"
#include "cli/judge/why.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "table_rows.h"

#define DQDS_MOST 8
static unsigned seen[64]; /* cases with each cause, as in why_lines_names */

/* The value of "key=value" if word is one; NULL: it is not. */
static const char *value_of(const char *word, const char *key)
{
    size_t len = strlen(key);
    return strncmp(word, key, len) == 0 && word[len] == '=' ? word + len + 1 : NULL;
}

static bool take_number(const char *word, const char *key, int64_t *ret)
{
    const char *value = value_of(word, key);
    if (value)
        *ret = strtoll(value, NULL, 10);
    return value;
}

static bool read_facts(char *text, struct why_facts *f)
{
    int64_t before = 0, attempt = 0, tasks = 0, global = 0;
    char *word;
    *f = (struct why_facts){.id = 7,
                            .tag = "t",
                            .status = -1,
                            .host = "h",
                            .pid = 9,
                            .before_most = 10000,
                            .lease_ms = 60000,
                            .ran_ms = -1,
                            .mean_ms = -1,
                            .usual_ms = -1};
    while ((word = strsep(&text, " "))) {
        for (int s = 0; s <= TASK_STATUS_UNKNOWN; s++)
            if (!strcmp(word, task_status_name(s)))
                f->status = s;
        if (take_number(word, "due", &f->due_in_ms) || take_number(word, "before", &before) ||
            take_number(word, "mean", &f->mean_ms) || take_number(word, "ran", &f->ran_ms) ||
            take_number(word, "usual", &f->usual_ms) || take_number(word, "lease", &f->lease_ms) ||
            take_number(word, "attempt", &attempt) || take_number(word, "tasks", &tasks) ||
            take_number(word, "paused", &f->limit.paused_until_at) ||
            take_number(word, "held", &f->limit.held_until_at) ||
            take_number(word, "expires", &f->expires_at) || take_number(word, "global", &global) ||
            take_number(word, "timeout", &f->timeout_ms) ||
            take_number(word, "longest", &f->longest_ms))
            continue;
        f->paused_as = value_of(word, "as") ? value_of(word, "as") : f->paused_as;
        f->error = value_of(word, "error") ? value_of(word, "error") : f->error;
        if (value_of(word, "version"))
            f->version = strtoull(value_of(word, "version"), NULL, 10);
        f->holder = value_of(word, "holder") ? value_of(word, "holder") : f->holder;
        f->holder_end = f->holder ? "KILL 22" : NULL;
        f->nearest = value_of(word, "nearest") ? value_of(word, "nearest") : f->nearest;
        f->last_dqd = value_of(word, "last") ? value_of(word, "last") : f->last_dqd;
        f->lease_ahead |= !strcmp(word, "lease-ahead");
        f->owner_alive |= !strcmp(word, "owner-alive");
        f->locked |= !strcmp(word, "locked");
        f->limit_locked |= !strcmp(word, "limit-locked");
    }
    f->longest_id = f->longest_ms ? 280502 : 0;
    f->before = (uint64_t)before;
    f->attempt = (uint32_t)attempt;
    f->tasks = f->under = (uint64_t)tasks;
    f->limit.running = (uint32_t)global;
    return f->status >= 0;
}

static bool read_dqd(char *text, struct why_dqd *d)
{
    int64_t max = 8, tasks = 0, batch = 1;
    char *word;
    *d = (struct why_dqd){
        .host = "", .pid = 1, .slots = 32, .file = "/etc/dq/handlers.yaml", .line = 27};
    while ((word = strsep(&text, " "))) {
        if (take_number(word, "slots", &d->slots) || take_number(word, "running", &d->running) ||
            take_number(word, "max", &max) || take_number(word, "tasks", &tasks) ||
            take_number(word, "batch", &batch) || take_number(word, "rest", &d->rest_ms) ||
            take_number(word, "silent", &d->silent_ms) || take_number(word, "next", &d->next_ms)) {
            d->rest_error = value_of(word, "rest") ? "no program" : d->rest_error;
            continue;
        }
        if (!strcmp(word, "serves"))
            d->serves = WHY_SERVES;
        else if (!strcmp(word, "unknown"))
            d->serves = WHY_SERVES_UNKNOWN;
        else if (!strcmp(word, "quiet"))
            d->quiet = true;
        else if (!strcmp(word, "between"))
            d->between = true;
        else if (!strcmp(word, "refused") || !strcmp(word, "slow")) {
            d->hindrance = "error 1644";
            d->slow = *word == 's';
        } else if (*word && strcmp(word, "not"))
            d->host = word;
    }
    d->max_running = (uint32_t)max;
    d->tasks = (uint64_t)tasks;
    d->batch = (uint32_t)batch;
    return *d->host;
}

static bool holds(const struct why_lines *l, const char *text)
{
    struct buf b = BUF_INIT;
    for (size_t i = 0; i < l->count; i++)
        buf_printf(&b, "%s  %s\n", l->items[i].text, l->items[i].detail ? l->items[i].detail : "");
    bool found = !strcmp(text, "-") ? l->count == 0
                 : *text == '='     ? l->count == 1 && !strcmp(l->items[0].text, text + 1)
                                    : b.data && strstr(b.data, text);
    buf_done(&b);
    return found;
}

static void count_names(const struct why *w)
{
    for (size_t i = 0; i < w->causes.count; i++)
        for (size_t k = 0; why_lines_names[k]; k++)
            seen[k] += !strcmp(why_lines_names[k], w->causes.items[i].name);
}

static bool check_row(char **cell, const char *where)
{
    struct why_facts f;
    struct why_dqd dqds[DQDS_MOST];
    struct buf names = BUF_INIT;
    struct why w;
    char *dqd, *rest = cell[2];
    if (!read_facts(cell[1], &f)) {
        print_error("%s: malformed row\n", where);
        return false;
    }
    while (strcmp(cell[2], "-") != 0 && f.dqd_count < DQDS_MOST && (dqd = strsep(&rest, ";")))
        if (read_dqd(dqd, &dqds[f.dqd_count]))
            f.dqd_count++;
    f.dqds = dqds;
    why_decide(&f, &w);
    for (size_t i = 0; i < w.causes.count; i++)
        buf_printf(&names, "%s%s", i ? " " : "", w.causes.items[i].name);
    count_names(&w);
    bool right = !strcmp(names.data, cell[3]) && (!*cell[4] || holds(&w.causes, cell[4])) &&
                 (!*cell[5] || holds(&w.ruled_out, cell[5])) &&
                 (!*cell[6] || holds(&w.remedies, cell[6]));
    char *brief = why_brief(&w);
    if (*cell[7] && strcmp(cell[7], *brief ? brief : "-") != 0) {
        print_error("%s: in brief: %s\n", where, brief);
        right = false;
    }
    free(brief);
    for (size_t i = 0; !right && i < w.causes.count; i++)
        print_error("%s: %s: %s (%s)\n", where, w.causes.items[i].name, w.causes.items[i].text,
                    w.causes.items[i].detail ? w.causes.items[i].detail : "");
    for (size_t i = 0; !right && i < w.ruled_out.count; i++)
        print_error("%s: ruled out: %s\n", where, w.ruled_out.items[i].text);
    for (size_t i = 0; !right && i < w.remedies.count; i++)
        print_error("%s: helps: %s\n", where, w.remedies.items[i].text);
    buf_done(&names);
    why_lines_done(&w);
    return right;
}

/* Runs after the rows, which note what they have seen. */
static void each_cause_has_a_case(void **state)
{
    (void)state;
    for (size_t k = 0; why_lines_names[k]; k++)
        if (!seen[k])
            fail_msg("no case in why.tbl has the cause %s", why_lines_names[k]);
}

int main(void)
{
    const struct CMUnitTest others[] = {cmocka_unit_test(each_cause_has_a_case)};

    return table_run_rows("why.tbl", 8, check_row, others, 1);
}
