/*
 * why.c - see why.h. Invariant: a cause is named only if it alone keeps every dqd that serves the
 * tag from starting the task, or if each of these dqds has a cause of its own.
 */
#include "cli/judge/why.h"

#include "base/mem.h"
#include "base/task.h"
#include "base/text.h"
#include "base/when.h"
#include "conf/handlers.h"
#include "store/ask/why_store.h"

#include <inttypes.h>
#include <string.h>
#include <sys/param.h>

/* A task has run for far longer than usual. */
#define FAR_TIMES 10
#define FAR_MS WHEN_MINUTE
/* What it takes to start a handler, to kill it and to record its result, many times over: only a
 * long kill_grace lets a handler run for so long after its timeout. */
#define OVER_MS WHEN_MINUTE

static const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

/* A list that is drawn each second shows no part of one. */
static const char *put_seconds(char text[WHEN_TEXT_SIZE], int64_t ms)
{
    return when_format_rough(text, ms / WHEN_SECOND * WHEN_SECOND);
}

static void locked(const struct why_facts *f, struct why *w)
{
    if (!f->locked && !f->limit_locked)
        return;
    why_lines_cause(
        w, WHY_LOCKED,
        mem_strdup(f->locked ? "another session has locked its row" : LIMIT_LOCKED_TEXT),
        mem_printf("locked by %s", f->holder ? f->holder : "another session"))
        ->detail = mem_strdup(f->holder ? f->holder : "an application, or a dqd far away");
    why_lines_help(
        w, f->holder ? mem_printf("end that transaction, or: %s", f->holder_end)
                     : mem_strdup("dq why shows an account with the right PROCESS who has locked "
                                  "it; end that transaction"));
}

/* ---- tasks that do not wait ---- */

static void finished(const struct why_facts *f, struct why *w)
{
    static const enum why_cause causes[TASK_STATUS_COUNT] = {
        [TASK_DONE] = WHY_DONE, [TASK_FAILED] = WHY_FAILED, [TASK_CANCELLED] = WHY_CANCELLED};
    struct why_line *l =
        task_has_expired(f->status, f->error)
            ? why_lines_cause(w, WHY_EXPIRED, mem_strdup("it has expired"), NULL)
            : why_lines_cause(w, causes[f->status],
                              mem_printf("it is %s", task_status_name(f->status)), NULL);
    if (f->error)
        l->detail = mem_strdup(f->error);
    if (f->status != TASK_DONE)
        why_lines_help(w, mem_printf("dq retry %" PRIu64, f->id));
}

static void refused(const struct why_facts *f, struct why *w, char *text)
{
    why_lines_cause(w, WHY_REFUSED, text, mem_strdup("a task is refused: see dq why"))->detail =
        mem_printf("version %" PRIu64 ", attempt %" PRIu32, f->version, f->attempt);
    why_lines_help(w, why_store_mend_counts(f->id));
}

static void unknown(const struct why_facts *f, struct why *w)
{
    why_lines_cause(w, WHY_UNKNOWN, mem_strdup("its status is none that dq knows"), NULL);
    why_lines_help(w, why_store_mend_status(f->id));
}

/* "25m of 1h, usually 2s". Whole seconds: it goes on. */
static char *run_time(const struct why_facts *f, int64_t run_ms, int64_t timeout_ms)
{
    char run[WHEN_TEXT_SIZE], most[WHEN_TEXT_SIZE], usual[WHEN_TEXT_SIZE];
    return mem_printf("%s%s%s%s%s", put_seconds(run, run_ms), timeout_ms ? " of " : "",
                      timeout_ms ? when_format_rough(most, timeout_ms) : "",
                      f->usual_ms >= 0 ? ", usually " : "",
                      f->usual_ms >= 0 ? when_format_rough(usual, f->usual_ms) : "");
}

static bool is_over(int64_t run_ms, int64_t timeout_ms)
{
    return timeout_ms && run_ms - OVER_MS > timeout_ms;
}

/* Only a task that has run for far longer than usual: what runs well is let alone, and of what has
 * ended there is nothing to cancel. */
static void help_cancel(const struct why_facts *f, uint64_t id, int64_t run_ms, int64_t timeout_ms,
                        struct why *w)
{
    if (!id || f->usual_ms < 0 || run_ms < FAR_MS || run_ms / FAR_TIMES < f->usual_ms ||
        is_over(run_ms, timeout_ms))
        return;
    MEM_LOCAL char *time = run_time(f, run_ms, timeout_ms);
    why_lines_help(
        w, mem_printf("dq cancel %" PRIu64 ": task %" PRIu64 " has run for %s", id, id, time));
}

/* The runner kills a handler before its lease ends, whatever the database does. */
static void unrecorded(const struct why_facts *f, struct why *w)
{
    MEM_LOCAL char *time = run_time(f, MAX(f->ran_ms, 0), f->timeout_ms);
    bool ended = f->lease_ms <= 0;
    why_lines_cause(w, WHY_UNRECORDED,
                    mem_strdup(ended ? "its handler must have ended, but its result is not recorded"
                                     : "its timeout is over, but no result is recorded"),
                    NULL)
        ->detail = mem_printf("attempt %" PRIu32 " on %s/%" PRIu32 ": %s%s", f->attempt,
                              f->host ? f->host : "?", f->pid,
                              ended ? "its lease has ended" : "it has had ", ended ? "" : time);
    locked(f, w);
    if (!f->locked)
        why_lines_help(w, mem_printf("the log of dqd on %s says why: journalctl -u dqd",
                                     f->host ? f->host : "its host"));
}

static void runs(const struct why_facts *f, struct why *w)
{
    struct why_line *l = why_lines_cause(w, WHY_RUNS,
                                         mem_printf("it runs on %s/%" PRIu32 ", attempt %" PRIu32,
                                                    f->host ? f->host : "?", f->pid, f->attempt),
                                         NULL);
    if (f->ran_ms >= 0) {
        MEM_LOCAL char *time = run_time(f, f->ran_ms, f->timeout_ms);
        l->detail = mem_printf("it has run for %s%s", time,
                               f->again ? "; it was added again, and runs again then" : "");
    }
    why_lines_help(w, mem_printf("dq logs -f %" PRIu64, f->id));
    help_cancel(f, f->id, f->ran_ms, f->timeout_ms, w);
}

static void running(const struct why_facts *f, struct why *w)
{
    char text[WHEN_TEXT_SIZE];
    struct why_line *l;
    if (f->owner_alive) {
        if (f->lease_ms <= 0 || is_over(f->ran_ms, f->timeout_ms))
            unrecorded(f, w);
        else
            runs(f, w);
        return;
    }
    if (f->version == UINT64_MAX) {
        refused(f, w, mem_strdup("no dqd can take it back: its version cannot grow"));
        return;
    }
    l = why_lines_cause(
        w, WHY_LEASE,
        mem_printf("its dqd, %s/%" PRIu32 ", is not alive", f->host ? f->host : "?", f->pid), NULL);
    if (f->lease_ahead)
        l->detail = mem_strdup(
            "its lease was made while the server's clock was ahead: a live dqd ends it soon");
    else
        l->detail = f->lease_ms > 0 ? mem_printf("its lease ends in %s, then another dqd takes it",
                                                 when_format_rough(text, f->lease_ms))
                                    : mem_strdup("its lease has ended: the next live dqd takes it");
    if (f->dqd_count == 0)
        why_lines_help(w, mem_strdup("systemctl start dqd"));
}

/* ---- time and pause ---- */

/* The same words in a list of tags. */
static struct why_line *limited(const struct why_facts *f, const struct limit_answer *a,
                                enum why_cause which, struct why *w)
{
    BUF_LOCAL struct buf b = BUF_INIT;
    limit_put(&b, &f->limit, a, f->now_at);
    return why_lines_cause(w, which, mem_strdup(b.data), mem_strdup(b.data));
}

static void time_and_pause(const struct why_facts *f, struct why *w)
{
    char text[WHEN_TEXT_SIZE], soon[WHEN_TEXT_SIZE];
    bool snoozed = f->error && strncmp(f->error, TASK_SNOOZED_TEXT, strlen(TASK_SNOOZED_TEXT)) == 0;
    if (f->due_in_ms > 0 && snoozed) {
        why_lines_cause(w, WHY_SNOOZED,
                        mem_printf("it is snoozed, and runs again in %s",
                                   when_format_rough(text, f->due_in_ms)),
                        mem_printf("snoozed, next in %s", put_seconds(soon, f->due_in_ms)))
            ->detail = mem_strdup(f->error);
    } else if (f->due_in_ms > 0 && f->attempt && f->error) {
        why_lines_cause(w, WHY_RETRY,
                        mem_printf("it is retried in %s", when_format_rough(text, f->due_in_ms)),
                        mem_printf("retried in %s", put_seconds(soon, f->due_in_ms)))
            ->detail = mem_printf("attempt %" PRIu32 ": %s", f->attempt, f->error);
    } else if (f->due_in_ms > 0) {
        why_lines_cause(w, WHY_NOT_DUE,
                        mem_printf("it is due in %s", when_format_rough(text, f->due_in_ms)),
                        mem_printf("next in %s", put_seconds(soon, f->due_in_ms)));
    }
    if (f->due_in_ms > 0)
        why_lines_help(w, mem_printf("dq run-now %" PRIu64, f->id));
    if (f->expires_at > f->now_at)
        why_lines_rule_out(
            w, mem_printf("expiry (in %s)", when_format_rough(text, f->expires_at - f->now_at)));
    else if (f->expires_at)
        why_lines_cause(w, WHY_EXPIRED,
                        mem_strdup("it has expired: it is not started, but cancelled"),
                        mem_strdup("expired"));
    struct limit_answer a = limit_ask(&f->limit, 0, f->now_at, 0);
    BUF_LOCAL struct buf word = BUF_INIT;
    text_shell_word(&word, f->limit.name ? f->limit.name : f->tag);
    if (a.why != LIMIT_PAUSED)
        why_lines_rule_out(w, mem_strdup("a pause"));
    if (a.why != LIMIT_PAUSED && a.why != LIMIT_OPEN) {
        limited(f, &a, WHY_LIMIT, w);
        why_lines_help(w, mem_printf("dq limit %s", word.data));
    }
    if (a.why != LIMIT_PAUSED)
        return;
    const char *as = f->paused_as ? f->paused_as : f->tag;
    bool other = strcmp(as, f->tag) != 0;
    limited(f, &a, WHY_PAUSED, w)->detail = mem_printf(
        "%s%sby %s", other ? as : "", other ? ", " : "", f->paused_by ? f->paused_by : "?");
    buf_reset(&word);
    text_shell_word(&word, as);
    why_lines_help(w, mem_printf("dq resume %s", word.data));
}

/* ---- the dqds ---- */

static size_t count_serves(const struct why_facts *f, int serves)
{
    size_t n = 0;
    for (size_t i = 0; i < f->dqd_count; i++)
        n += (int)f->dqds[i].serves == serves;
    return n;
}

/* Processes that run its tasks: a batch is one. */
static uint64_t processes(const struct why_dqd *d)
{
    return (d->tasks + MAX(d->batch, 1) - 1) / MAX(d->batch, 1);
}

static bool is_full(const struct why_dqd *d)
{
    return processes(d) >= d->max_running;
}

static bool has_no_slot(const struct why_dqd *d)
{
    int kept = d->tasks ? handlers_slots_kept((int)d->slots) : 0;
    return d->slots == 0 || (d->running + kept >= d->slots && d->running > 0);
}

static bool is_blocked(const struct why_dqd *d)
{
    return d->serves != WHY_SERVES || d->quiet || d->rest_error || is_full(d) || has_no_slot(d);
}

static const char *base_name(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash ? slash + 1 : path ? path : "handlers file";
}

static void say_blocked(const struct why_dqd *d, struct why *w)
{
    char text[WHEN_TEXT_SIZE], soon[WHEN_TEXT_SIZE];
    BUF_LOCAL struct buf word = BUF_INIT;
    if (d->quiet) {
        text_shell_word(&word, d->host);
        why_lines_cause(w, WHY_QUIET, mem_printf("dqd %s/%" PRIu32 " is quiet", d->host, d->pid),
                        mem_printf("%s is quiet", d->host));
        why_lines_help(w, mem_printf("dq unquiet %s", word.data));
    } else if (d->rest_error) {
        why_lines_cause(
            w, WHY_RESTS,
            d->rest_ms > 0 ? mem_printf("its handler cannot be started on %s: rests for %s",
                                        d->host, when_format_rough(text, d->rest_ms))
                           : mem_printf("its handler could not be started on %s", d->host),
            d->rest_ms > 0 ? mem_printf("cannot start: rests for %s", put_seconds(soon, d->rest_ms))
                           : mem_strdup("cannot start"))
            ->detail = mem_strdup(d->rest_error);
        why_lines_help(w, mem_printf("correct %s:%" PRIu32 " or the program, systemctl reload dqd",
                                     base_name(d->file), d->line));
    } else if (d->slots == 0) {
        why_lines_cause(w, WHY_SLOTS, mem_printf("dqd %s/%" PRIu32 " is ending", d->host, d->pid),
                        mem_printf("%s is ending", d->host));
        why_lines_help(w, mem_strdup("another dqd"));
    } else if (is_full(d)) {
        why_lines_cause(w, WHY_MAX_RUNNING,
                        mem_printf("all %" PRIu32 " place%s of the tag on %s are taken",
                                   d->max_running, plural(d->max_running), d->host),
                        mem_printf("max_running %" PRIu32 " is full", d->max_running))
            ->detail = mem_printf("max_running: %" PRIu32 ", %s:%" PRIu32 "%s", d->max_running,
                                  base_name(d->file), d->line,
                                  d->elsewhere ? ", also for those of a dqd that is ending" : "");
    } else {
        why_lines_cause(w, WHY_SLOTS,
                        mem_printf("the slots of dqd %s/%" PRIu32 " are taken", d->host, d->pid),
                        mem_printf("the slots of %s are taken", d->host))
            ->detail = mem_printf("%" PRId64 " of %" PRId64 " slots run handlers%s", d->running,
                                  d->slots, d->tasks ? ", the rest is kept for other tags" : "");
        why_lines_help(w, mem_strdup("slots in dq.ini, systemctl restart dqd"));
    }
}

/* The server is the same for all dqds: one that has seen it is enough. */
static void hindered(const struct why_facts *f, struct why *w)
{
    const struct why_dqd *d = f->dqds;
    for (size_t i = 1; i < f->dqd_count && !d->hindrance; i++)
        d = &f->dqds[i];
    if (!d->hindrance)
        return;
    why_lines_cause(w, d->slow ? WHY_SLOW : WHY_REFUSED,
                    mem_printf("the server %s of its tag", d->slow
                                                               ? "takes long to change a task"
                                                               : "refuses to find or change tasks"),
                    mem_printf("%s: see dq why", d->slow ? "slow" : "refused"))
        ->detail = mem_strdup(d->hindrance);
    why_lines_help(
        w, mem_strdup(d->slow ? "faster triggers on dq_task" : "correct what the error names"));
}

static void blocked_dqds(const struct why_facts *f, struct why *w)
{
    const struct why_dqd *full = NULL;
    bool blocked = true;
    for (size_t i = 0; i < f->dqd_count; i++)
        blocked = blocked && is_blocked(&f->dqds[i]);
    for (size_t i = 0; i < f->dqd_count; i++) {
        const struct why_dqd *d = &f->dqds[i];
        if (blocked && d->serves == WHY_SERVES) {
            say_blocked(d, w);
            full = !d->rest_error && is_full(d) ? d : full;
        }
    }
    if (full)
        why_lines_help(
            w, mem_printf("max_running: %" PRIu32 ", systemctl reload dqd", full->max_running * 4));
    const struct limit l = {.running = f->limit.running, LIMIT_NONE}; /* the rest is said above */
    struct limit_answer a = limit_ask(&l, f->under, f->now_at, 0);
    if (a.why == LIMIT_RUNNING) {
        limited(f, &a, WHY_GLOBAL, w)->detail = mem_printf(
            "%" PRIu64 " task%s under this limit run on all hosts", f->under, plural(f->under));
        BUF_LOCAL struct buf word = BUF_INIT;
        text_shell_word(&word, f->limit.name ? f->limit.name : f->tag);
        why_lines_help(
            w, mem_printf("dq limit %s --running %" PRIu32, word.data, f->limit.running * 2));
    }
    if (full || a.why == LIMIT_RUNNING)
        help_cancel(f, f->longest_id, f->longest_ms, f->timeout_ms, w);
}

static void say_unserved(const struct why_facts *f, struct why *w)
{
    struct why_line *l = why_lines_cause(w, WHY_UNSERVED, mem_strdup("no dqd serves it"),
                                         mem_strdup("no dqd serves it"));
    if (f->nearest) {
        l->detail = mem_printf("did you mean \"%s\"?", f->nearest);
        why_lines_help(w, mem_printf("dq cancel %" PRIu64 ", and add it as %s", f->id, f->nearest));
    }
    why_lines_help(w, mem_strdup("a handler for it in handlers.yaml, systemctl reload dqd"));
}

static void say_alive(const struct why_facts *f, struct why *w)
{
    int64_t free_slots = 0;
    size_t n = 0;
    BUF_LOCAL struct buf seen = BUF_INIT;
    for (size_t i = 0; i < f->dqd_count; i++) {
        const struct why_dqd *d = &f->dqds[i];
        char text[WHEN_TEXT_SIZE];
        if (d->between)
            continue;
        free_slots += MAX(d->slots - d->running, 0);
        if (n++ < 3)
            buf_printf(&seen, "%s%s/%" PRIu32 " was seen %s ago", n > 1 ? ", " : "", d->host,
                       d->pid, put_seconds(text, d->silent_ms));
    }
    if (n > 3)
        buf_printf(&seen, ", %zu more", n - 3);
    if (n)
        why_lines_rule_out(w, mem_printf("no live dqd (%s)", seen.data));
    if (free_slots)
        why_lines_rule_out(w, mem_printf("no free slot (%" PRId64 " %s free)", free_slots,
                                         free_slots == 1 ? "is" : "are"));
}

/* Those that serve it are passes of timers, and none of them is going on. */
static bool between_passes(const struct why_facts *f, struct why *w)
{
    char ended[WHEN_TEXT_SIZE], next[WHEN_TEXT_SIZE];
    const struct why_dqd *last = NULL;
    for (size_t i = 0; i < f->dqd_count; i++) {
        const struct why_dqd *d = &f->dqds[i];
        if (d->serves == WHY_SERVES && (!d->between || d->quiet || d->rest_error || d->hindrance))
            return false;
        if (d->serves == WHY_SERVES && (!last || d->silent_ms < last->silent_ms))
            last = d;
    }
    if (!last || f->due_in_ms > 0)
        return last;
    put_seconds(next, last->next_ms);
    why_lines_cause(w, WHY_NEXT_PASS,
                    mem_printf("it waits for the next pass: the last one ended %s ago",
                               put_seconds(ended, last->silent_ms)),
                    mem_printf("next pass within %s", next))
        ->detail = mem_printf("on %s, expected within %s", last->host, next);
    return true;
}

static void dqds(const struct why_facts *f, struct why *w)
{
    if (f->dqd_count == 0) {
        why_lines_cause(w, WHY_NO_DQD, mem_strdup("no dqd is alive"),
                        f->last_dqd ? mem_printf("no dqd is alive (last: %s)", f->last_dqd)
                                    : mem_strdup("no dqd is alive"))
            ->detail = f->last_dqd ? mem_printf("last: %s", f->last_dqd) : NULL;
        why_lines_help(w, mem_strdup("systemctl start dqd;  why it ended: journalctl -u dqd"));
        return;
    }
    say_alive(f, w);
    if (between_passes(f, w))
        return;
    if (count_serves(f, WHY_SERVES))
        blocked_dqds(f, w);
    else if (!count_serves(f, WHY_SERVES_UNKNOWN))
        say_unserved(f, w);
    hindered(f, w);
}

/* ---- its place in the queue ---- */

/* Tasks of the tag that can run at a time. */
static uint64_t places(const struct why_facts *f)
{
    uint64_t n = 0;
    for (size_t i = 0; i < f->dqd_count; i++)
        if (f->dqds[i].serves == WHY_SERVES && !f->dqds[i].rest_error)
            n += MIN((uint64_t)MAX(f->dqds[i].slots, 0), f->dqds[i].max_running) *
                 MAX(f->dqds[i].batch, 1);
    return f->limit.running ? MIN(n, f->limit.running) : n;
}

static void behind(const struct why_facts *f, struct why *w)
{
    char all[WHEN_TEXT_SIZE], one[WHEN_TEXT_SIZE];
    uint64_t n = places(f), before = MIN(f->before, f->before_most);
    bool more = f->before > f->before_most;
    if (f->due_in_ms > 0 || !before)
        return;
    struct why_line *l =
        why_lines_cause(w, WHY_BEHIND,
                        mem_printf("%" PRIu64 "%s task%s of its tag %s before it", before,
                                   more ? "+" : "", plural(before), before == 1 ? "comes" : "come"),
                        NULL);
    if (f->mean_ms >= 0 && n)
        l->detail = mem_printf(
            "%s %s at %s a task", more ? "more than" : "about",
            when_format_rough(all, (int64_t)((double)before * (double)f->mean_ms / (double)n)),
            when_format_rough(one, f->mean_ms));
}

void why_decide(const struct why_facts *f, struct why *ret)
{
    *ret = (struct why){.causes = {NULL, 0}};
    if (TASK_FINISHED & TASK_BIT(f->status)) {
        finished(f, ret);
        return;
    }
    if (f->status == TASK_RUNNING) {
        running(f, ret);
        return;
    }
    if (f->status != TASK_PENDING) {
        unknown(f, ret);
        return;
    }
    if (!task_countable(f->version, f->attempt))
        refused(f, ret, mem_strdup("no dqd claims it: its version or attempt is too large"));
    time_and_pause(f, ret);
    dqds(f, ret);
    behind(f, ret);
    locked(f, ret);
    if (ret->causes.count == 0)
        why_lines_cause(ret, WHY_NONE,
                        mem_strdup("nothing holds it back: it starts with the next poll of a dqd"),
                        NULL);
}

bool why_is_open(const struct why *w)
{
    return why_lines_find(w, WHY_NONE);
}

char *why_brief(const struct why *w)
{
    /* beside these, the others do not matter yet */
    static const enum why_cause alone[] = {WHY_PAUSED, WHY_LIMIT, WHY_RETRY, WHY_SNOOZED,
                                           WHY_NOT_DUE};
    struct buf b = BUF_INIT;
    for (size_t i = 0; i < sizeof alone / sizeof alone[0]; i++) {
        const struct why_line *l = why_lines_find(w, alone[i]);
        if (l && l->brief)
            return mem_strdup(l->brief);
    }
    buf_str(&b, "");
    for (size_t i = 0; i < w->causes.count; i++) {
        const char *brief = w->causes.items[i].brief;
        if (brief && !strstr(b.data, brief)) /* two hosts may say the same */
            buf_printf(&b, "%s%s", b.len ? "; " : "", brief);
    }
    return buf_take(&b);
}
