/*
 * cmd_check.c - dq check: whether an operator has to act, for Nagios and its like.
 *
 * Invariant: exit status 0 is a statement: everything that was asked for could be read, and is as
 * it should be.
 */
#include "cli/judge/fleet.h"
#include "cli/judge/schedules.h"
#include "cli/line/verbs.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/when.h"
#include "base/when_parse.h"
#include "store/ask/tag_store.h"
#include "store/ask/task_list.h"
#include "store/fleet/minute_store.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

enum status { STATUS_OK, STATUS_WARNING, STATUS_CRITICAL, STATUS_UNKNOWN };
static const char *const status_names[] = {"OK", "WARNING", "CRITICAL", "UNKNOWN"};

#define TAGS_NAMED 3 /* of each kind; the others are counted */

struct check_values {
    const char *tag, *max_failed, *max_expired, *schedules;
    int64_t max_late_ms, max_pending, max_running_ms, min_dqds; /* -1: no limit */
    /* what the texts mean */
    struct check_rate {
        int64_t most, in_ms; /* -1: none; in this time */
    } failed, expired;
};

struct finding {
    enum status status;
    struct buf problems; /* separated by "; " */
};

__attribute__((format(printf, 3, 4))) static void add_problem(struct finding *f, enum status status,
                                                              const char *fmt, ...)
{
    va_list ap;

    buf_str(&f->problems, f->problems.len ? "; " : "");
    va_start(ap, fmt);
    buf_vprintf(&f->problems, fmt, ap);
    va_end(ap);
    f->status = MAX(f->status, status);
}

/* ---- the limits */

/* "10" or "10/1h". */
static int parse_rate(const char *option, const char *text, struct check_rate *ret, struct err *err)
{
    char *end = NULL;
    struct err why = {0};

    *ret = (struct check_rate){-1, WHEN_HOUR};
    if (!text)
        return 0;
    errno = 0;
    ret->most = isdigit((unsigned char)text[0]) ? strtoll(text, &end, 10) : -1;
    if (end && *end == '/' && when_parse_duration(end + 1, &ret->in_ms, &why) < 0)
        return err_set(err, ERR_USAGE, "%s: %s", option, why.text);
    if (!end || errno || (*end && *end != '/') || ret->in_ms < WHEN_MINUTE)
        return err_set(err, ERR_USAGE,
                       "%s %s: give a number, and a time of a minute or more: 10/1h", option, text);
    return 0;
}

/* ---- what is wrong */

/* The numbers that are compared with the limits, over all tags that are not paused. */
struct numbers {
    int64_t late_ms;
    int64_t running_ms, most_running_ms; /* of the task that runs longest; its limit, -1: none */
    uint64_t pending, failed, expired;
    const char *no_tag; /* what to say, if none matches */
};

static void check_late(struct finding *f, const struct check_values *v, const struct fleet *fleet,
                       const struct tag_info *tags, size_t count, int64_t now_at)
{
    char late[WHEN_TEXT_SIZE], most[WHEN_TEXT_SIZE];
    size_t named = 0;

    for (size_t i = 0; v->max_late_ms >= 0 && i < count; i++) {
        int64_t late_ms = tag_info_late_ms(&tags[i], now_at);
        BUF_LOCAL struct buf held = BUF_INIT;

        if (late_ms <= v->max_late_ms || named++ >= TAGS_NAMED)
            continue;
        fleet_put_limit(&held, fleet, &tags[i], now_at);
        add_problem(f, STATUS_CRITICAL, "%s is %s late, more than %s%s%s", tags[i].tag,
                    when_format_rough(late, late_ms), when_format_rough(most, v->max_late_ms),
                    held.len ? ": " : "", held.len ? held.data : "");
    }
    if (named > TAGS_NAMED)
        add_problem(f, STATUS_CRITICAL, "%zu more tags are late", named - TAGS_NAMED);
}

/* Those whose breakers have opened, while they rest or tasks wait for the one that tries. */
static void check_limits(struct finding *f, const struct fleet *fleet, const struct tag_info *tags,
                         size_t count, int64_t now_at)
{
    for (size_t i = 0; i < fleet->limit_count; i++) {
        struct limit l = fleet->limits[i].limit;
        const struct limit_answer a = limit_ask(&l, 0, now_at, 0);
        BUF_LOCAL struct buf b = BUF_INIT;
        size_t k = 0;

        while (k < count && (strcmp(fleet_limit_name(fleet, tags[k].tag), fleet->limits[i].name) ||
                             (!a.why && !tags[k].due)))
            k++;
        if (!l.breaker || k == count)
            continue;
        l.name = fleet->limits[i].name;
        limit_put(&b, &l, &(struct limit_answer){0, a.why ? a.why : LIMIT_PROBED, a.again_at},
                  now_at);
        add_problem(f, STATUS_WARNING, "%s", b.data);
    }
}

/* Every live dqd that serves it, of which there is one. */
static bool is_quiet(const struct fleet *fleet, const char *tag)
{
    bool quiet = fleet->quiet > 0;

    for (size_t i = 0; quiet && i < fleet->count; i++)
        quiet = fleet->dqds[i].quiet ||
                fleet_dqd_serves(fleet, &fleet->dqds[i], tag, NULL) == FLEET_SERVES_NOT;
    return quiet;
}

static void check_served(struct finding *f, const struct fleet *fleet, const struct tag_info *tags,
                         size_t count)
{
    size_t unserved = 0, resting = 0, quiet = 0;

    for (size_t i = 0; fleet->alive && i < count; i++) {
        const struct tag_info *t = &tags[i];
        const struct handler_rest *rest;

        if (!t->due || tag_info_paused(t))
            continue;
        if (fleet_serves(fleet, t->tag, NULL) == FLEET_SERVES_NOT) {
            if (unserved++ < TAGS_NAMED)
                add_problem(f, STATUS_CRITICAL,
                            "%s has %s%" PRIu64 " due tasks, and no dqd serves it", t->tag,
                            t->due_sampled ? "about " : "", t->due);
        } else if (is_quiet(fleet, t->tag)) {
            if (quiet++ < TAGS_NAMED)
                add_problem(f, STATUS_WARNING,
                            "%s has due tasks, and every dqd that serves it is"
                            " quiet: see dq unquiet",
                            t->tag);
        } else if ((rest = fleet_rests(fleet, t->tag)) && resting++ < TAGS_NAMED) {
            add_problem(f, STATUS_WARNING, "%s %s: %s", t->tag, fleet_reasons[rest->reason],
                        rest->error ? rest->error : "its handler cannot be started");
        }
    }
    if (unserved > TAGS_NAMED)
        add_problem(f, STATUS_CRITICAL, "%zu more tags are served by none", unserved - TAGS_NAMED);
    if (quiet > TAGS_NAMED)
        add_problem(f, STATUS_WARNING, "%zu more tags are served by quiet dqds only",
                    quiet - TAGS_NAMED);
    if (resting > TAGS_NAMED)
        add_problem(f, STATUS_WARNING, "%zu more tags rest, are refused or slow",
                    resting - TAGS_NAMED);
}

static void put_silent(struct finding *f, const struct fleet *fleet)
{
    char ago[WHEN_TEXT_SIZE];
    size_t named = 0;

    for (size_t i = 0; i < fleet->count; i++)
        if (poller_store_is_silent(&fleet->dqds[i]) && named++ < TAGS_NAMED)
            add_problem(f, STATUS_CRITICAL, "%s/%" PRIu32 " is silent for %s", fleet->dqds[i].host,
                        fleet->dqds[i].pid, when_format_rough(ago, fleet->dqds[i].silent_ms));
}

static void check_fleet(struct finding *f, const struct check_values *v, const struct fleet *fleet)
{
    BUF_LOCAL struct buf last = BUF_INIT;

    if (fleet->alive && v->min_dqds > (int64_t)fleet->alive) {
        add_problem(f, STATUS_CRITICAL, "%zu of at least %" PRId64 " dqds %s alive", fleet->alive,
                    v->min_dqds, fleet->alive == 1 ? "is" : "are");
        put_silent(f, fleet);
    } else if (fleet->alive && fleet->alive == fleet->between) {
        put_silent(f, fleet); /* those passes may have been made by hand */
    }
    if (fleet->alive)
        return;
    fleet_put_last(&last, fleet);
    if (last.len)
        add_problem(f, STATUS_CRITICAL, "no dqd is alive (last: %s)", last.data);
    else
        add_problem(f, STATUS_CRITICAL, "no dqd is alive");
}

/* The running tasks that have run longest. */
struct longest {
    int64_t now_at, most_ms;
    size_t over; /* tasks beyond the limit */
    struct {
        uint64_t id;
        char *tag;
        int64_t ran_ms;
    } tasks[TAGS_NAMED]; /* the longest first; tag NULL: none */
};

static int add_running(const struct task *t, void *arg)
{
    struct longest *l = arg;
    int64_t ran_ms = t->execution_at == TASK_TIME_NONE ? 0 : l->now_at - t->execution_at;
    size_t at = 0;

    while (at < TAGS_NAMED && l->tasks[at].tag && l->tasks[at].ran_ms >= ran_ms)
        at++;
    l->over += ran_ms > l->most_ms;
    if (at == TAGS_NAMED)
        return 0;
    free(l->tasks[TAGS_NAMED - 1].tag);
    memmove(&l->tasks[at + 1], &l->tasks[at], (TAGS_NAMED - 1 - at) * sizeof l->tasks[0]);
    l->tasks[at].id = t->id;
    l->tasks[at].tag = mem_strdup(t->tag);
    l->tasks[at].ran_ms = ran_ms;
    return 0;
}

static int check_running(struct cmd_context *c, const struct check_values *v, int64_t now_at,
                         struct finding *f, int64_t *ret_longest_ms, struct err *err)
{
    const struct task_filter filter = {.statuses = TASK_BIT(TASK_RUNNING), .tag_glob = v->tag};
    struct longest l = {.now_at = now_at, .most_ms = v->max_running_ms};
    char ran[WHEN_TEXT_SIZE], most[WHEN_TEXT_SIZE];
    int rc = task_list(c->db, &filter, false, add_running, &l, err);

    for (size_t i = 0; rc == 0 && i < MIN(l.over, (size_t)TAGS_NAMED); i++)
        add_problem(f, STATUS_CRITICAL, "task %" PRIu64 " of %s has run for %s, more than %s",
                    l.tasks[i].id, l.tasks[i].tag,
                    when_format_rough(ran, l.tasks[i].ran_ms / WHEN_SECOND * WHEN_SECOND),
                    when_format_rough(most, l.most_ms));
    if (rc == 0 && l.over > TAGS_NAMED)
        add_problem(f, STATUS_CRITICAL, "%zu more %s run for longer than that", l.over - TAGS_NAMED,
                    l.over - TAGS_NAMED == 1 ? "task has" : "tasks have");
    *ret_longest_ms = MAX(l.tasks[0].ran_ms, 0);
    for (size_t i = 0; i < TAGS_NAMED; i++)
        free(l.tasks[i].tag);
    return rc;
}

static void check_rate(struct finding *f, const struct check_rate *r, uint64_t n, const char *what)
{
    char text[WHEN_TEXT_SIZE];

    if (r->most >= 0 && n > (uint64_t)r->most)
        add_problem(f, STATUS_CRITICAL, "%" PRIu64 " tasks %s in %s, more than %" PRId64, n, what,
                    when_format_rough(text, r->in_ms), r->most);
}

static void check_numbers(struct finding *f, const struct check_values *v, const struct numbers *n)
{
    check_rate(f, &v->failed, n->failed, "failed");
    check_rate(f, &v->expired, n->expired, "expired");
    if (v->max_pending >= 0 && n->pending > (uint64_t)v->max_pending)
        add_problem(f, STATUS_CRITICAL, "%" PRIu64 " tasks are pending, more than %" PRId64,
                    n->pending, v->max_pending);
}

static int check_schedules(struct cmd_context *c, const char *globs, const struct fleet *fleet,
                           struct finding *f, struct err *err)
{
    const struct schedule_filter filter = {.glob = globs};
    struct schedule *all;
    size_t count, named = 0;
    int64_t now_at;
    int rc = schedule_store_list(c->db, &filter, &all, &count, &now_at, err);

    if (rc < 0)
        return rc;
    for (size_t i = 0; i < count; i++) {
        BUF_LOCAL struct buf why = BUF_INIT;

        if (schedules_put_alarm(&why, &all[i], fleet, now_at) && named++ < TAGS_NAMED)
            add_problem(f, STATUS_CRITICAL, "%s", why.data);
    }
    if (named > TAGS_NAMED)
        add_problem(f, STATUS_CRITICAL, "%zu more schedules", named - TAGS_NAMED);
    if (!count)
        add_problem(f, STATUS_UNKNOWN, "no schedule matches %s", globs);
    schedule_row_free(all, count);
    return 0;
}

/* ---- the line */

/* Text before the bar, which separates it from the performance data: no bar, one line. */
static void put_text(struct buf *line, const char *text)
{
    BUF_LOCAL struct buf inert = BUF_INIT;

    text_escape(&inert, text, strlen(text), 0);
    for (size_t i = 0; i < inert.len; i++) {
        if (inert.data[i] == '|')
            buf_str(line, "\\x7c");
        else
            buf_chr(line, inert.data[i]);
    }
}

/* most_ms: the limit; -1: none. */
static void put_time(struct buf *line, const char *name, int64_t ms, int64_t most_ms)
{
    buf_printf(line, "%s=%" PRId64 ".%03ds;;", name, ms / 1000, (int)(ms % 1000));
    if (most_ms >= 0)
        buf_printf(line, "%" PRId64 ".%03d", most_ms / 1000, (int)(most_ms % 1000));
    buf_str(line, ";0");
}

static void put_limit(struct buf *line, int64_t limit)
{
    buf_str(line, ";;");
    if (limit >= 0)
        buf_printf(line, "%" PRId64, limit);
    buf_str(line, ";0");
}

static void put_line(const struct finding *f, const struct check_values *v, const struct numbers *n,
                     const struct fleet *fleet)
{
    struct buf line = BUF_INIT;
    char late[WHEN_TEXT_SIZE];

    buf_printf(&line, "%s: ", status_names[f->status]);
    if (f->problems.len)
        put_text(&line, f->problems.data);
    else
        buf_printf(&line, "%s late at most, %" PRIu64 " pending, %zu dqd alive",
                   when_format_rough(late, n->late_ms), n->pending, fleet->alive);
    if (!f->problems.len && fleet->between)
        buf_printf(&line, ", %zu between passes", fleet->between);
    if (!f->problems.len && *n->no_tag) {
        buf_str(&line, ", ");
        put_text(&line, n->no_tag);
    }
    buf_str(&line, " | ");
    put_time(&line, "late", n->late_ms, v->max_late_ms);
    buf_printf(&line, " failed=%" PRIu64, n->failed);
    put_limit(&line, v->failed.most);
    buf_printf(&line, " pending=%" PRIu64, n->pending);
    put_limit(&line, v->max_pending);
    buf_printf(&line, " dqds=%zu;;", fleet->alive);
    if (v->min_dqds >= 0)
        buf_printf(&line, "%" PRId64 ":", v->min_dqds);
    buf_str(&line, ";0");
    if (v->expired.most >= 0) {
        buf_printf(&line, " expired=%" PRIu64, n->expired);
        put_limit(&line, v->expired.most);
    }
    if (n->most_running_ms >= 0)
        put_time(&line, " running", n->running_ms, n->most_running_ms);
    buf_chr(&line, '\n');
    out_take(&line);
}

static void put_json(const struct finding *f, const struct numbers *n, const struct fleet *fleet,
                     const char *text)
{
    struct buf b = BUF_INIT;

    buf_printf(&b, "{\"status\":\"%s\",\"text\":", status_names[f->status]);
    json_put_string(&b, text, strlen(text));
    if (n)
        buf_printf(&b,
                   ",\"late\":%" PRId64 ",\"failed\":%" PRIu64 ",\"expired\":%" PRIu64
                   ",\"pending\":%" PRIu64 ",\"dqds\":%zu",
                   n->late_ms, n->failed, n->expired, n->pending, fleet->alive);
    if (n && n->most_running_ms >= 0)
        buf_printf(&b, ",\"running\":%" PRId64, n->running_ms);
    buf_str(&b, "}\n");
    out_take(&b);
}

static int count(struct cmd_context *c, const struct check_values *v, const struct check_rate *r,
                 size_t offset, uint64_t *ret, struct err *err)
{
    struct minute_answer a;
    int rc = minute_store_read(c->db, &(struct minute_ask){v->tag, r->in_ms, 0, 0}, &a, err);

    if (rc < 0)
        return rc;
    for (size_t i = 0; i < a.count; i++)
        *ret += *(const uint64_t *)((const char *)&a.rows[i].counts + offset);
    minute_store_free(a.rows, a.count);
    return 0;
}

static int look(struct cmd_context *c, const struct check_values *v, struct finding *f,
                struct err *err)
{
    LOCAL_BY(fleet_done) struct fleet fleet = {0};
    struct tag_info *tags = NULL;
    BUF_LOCAL struct buf no_tag = BUF_INIT;
    struct numbers n = {.most_running_ms = v->max_running_ms};
    size_t tag_count = 0;
    int64_t now_at = 0;
    int rc = cmd_open(c, CMD_SCHEMA, err);

    if (rc == 0)
        rc = fleet_load(c->db, &fleet, err);
    if (rc == 0)
        rc = fleet_list_tags(&fleet, c->db, v->tag, &(struct tag_count_how){.exact = false}, &tags,
                             &tag_count, &now_at, err);
    if (rc == 0)
        rc = count(c, v, &v->failed, offsetof(struct counts, failed), &n.failed, err);
    if (rc == 0)
        rc = count(c, v, &v->expired, offsetof(struct counts, expired), &n.expired, err);
    if (rc == 0) {
        if (v->tag && tag_count == 0)
            buf_printf(&no_tag, "no task has a tag that matches %s", v->tag);
        n.no_tag = no_tag.len ? no_tag.data : "";
        for (size_t i = 0; i < tag_count; i++) {
            n.late_ms = MAX(n.late_ms, tag_info_late_ms(&tags[i], now_at));
            n.pending += tags[i].count[TASK_PENDING];
        }
        check_fleet(f, v, &fleet);
        check_late(f, v, &fleet, tags, tag_count, now_at);
        check_served(f, &fleet, tags, tag_count);
        check_limits(f, &fleet, tags, tag_count, now_at);
        check_numbers(f, v, &n);
        if (v->max_running_ms >= 0)
            rc = check_running(c, v, now_at, f, &n.running_ms, err);
        if (rc == 0 && v->schedules)
            rc = check_schedules(c, v->schedules, &fleet, f, err);
    }
    if (rc == 0 && c->style.format == OUT_JSON)
        put_json(f, &n, &fleet, f->problems.len ? f->problems.data : n.no_tag);
    else if (rc == 0)
        put_line(f, v, &n, &fleet);
    tag_store_free(tags, tag_count);
    return rc;
}

static int run(struct cmd_context *c, struct err *err)
{
    struct check_values v = *(const struct check_values *)c->values;
    struct finding f = {STATUS_OK, BUF_INIT};

    if (parse_rate("--max-failed", v.max_failed, &v.failed, err) < 0 ||
        parse_rate("--max-expired", v.max_expired, &v.expired, err) < 0)
        return err->code;
    if (look(c, &v, &f, err) < 0) {
        BUF_LOCAL struct buf line = BUF_INIT;

        f.status = STATUS_UNKNOWN;
        if (c->style.format == OUT_JSON || c->output == OUT_JSON) {
            put_json(&f, NULL, NULL, err->text);
        } else {
            buf_str(&line, "UNKNOWN: ");
            put_text(&line, err->text);
            buf_chr(&line, '\n');
            out_write(&line);
        }
    }
    c->exit_status = (int)f.status;
    buf_done(&f.problems);
    return 0;
}

#define FIELD(name) offsetof(struct check_values, name)
static const struct cmd_option options[] = {
    {"max-late", 0, CMD_DURATION, FIELD(max_late_ms), "D", NULL, 0},
    {"max-failed", 0, CMD_TEXT, FIELD(max_failed), "N[/D]", NULL, 0},
    {"max-expired", 0, CMD_TEXT, FIELD(max_expired), "N[/D]", NULL, 0},
    {"max-running", 0, CMD_DURATION, FIELD(max_running_ms), "D", NULL, 0},
    {"max-pending", 0, CMD_COUNT, FIELD(max_pending), "N", NULL, 0},
    {"min-dqds", 0, CMD_COUNT, FIELD(min_dqds), "N", NULL, 1},
    {"schedules", 0, CMD_TAGS, FIELD(schedules), "GLOB", NULL, 0},
    {"tag", 't', CMD_TAGS, FIELD(tag), "GLOB", NULL, 0},
};

const struct cmd cmd_check = {
    .name = "check",
    CMD_OPTIONS(options, check_values),
    .level = CMD_NOTHING,
    .reads_only = true,
    .formats = OUT_BIT(OUT_TABLE) | OUT_BIT(OUT_JSON),
    .run = run,
};
