/*
 * cmd_events.c - dq events: acts of operators, and what happened to tasks meanwhile.
 */
#include "cli/judge/history.h"
#include "cli/judge/seen.h"
#include "cli/line/select.h"
#include "cli/line/verbs.h"

#include "base/mem.h"
#include "base/task.h"
#include "base/text.h"
#include "base/when.h"
#include "base/when_parse.h"
#include "store/db/db_connect.h"
#include "store/fleet/poller_store.h"

#include <string.h>
#include <sys/param.h>
#include <time.h>

#define DEFAULT_WINDOW_HOURS 24
#define MOST 5000        /* events, and failed attempts, of one look */
#define STEPS_MOST 24    /* that count started and done tasks, for a tag */
#define FOLLOW_EVERY_S 1 /* a look */
#define FOLLOW_MOST 2000
/* How far a look goes back: by the longest lease, after which another dqd records the attempt of
 * one that hangs, and by this. A lease of a day would make each look read too much. */
#define FOLLOW_MORE_MS (15 * WHEN_SECOND)
#define FOLLOW_LEASE_MOST_MS WHEN_HOUR
#define FOLLOW_LEASES_MS WHEN_MINUTE /* when they are read again */

struct events_values {
    const char *key;
    struct cmd_when since, until;
    const char *tag, *who, *event, *columns;
    bool acts;
    int64_t limit;
    bool follow;
};

#define LINE ((const struct event_row *)row)

OUT_GETTER(event)
{
    cell_set_text(ret, LINE->event);
    if (strcmp(LINE->event, "failed") == 0 || strcmp(LINE->event, "dqd-lost") == 0)
        ret->colour = CELL_BAD;
    else if (strcmp(LINE->event, "done") == 0)
        ret->colour = CELL_GOOD;
}

/* The instant of the text is one of the database, in UTC. Returns it as people see the others,
 * in the buffer of cells; NULL: there is none. */
static const char *lost_for_people(const char *detail, const struct cell_style *style)
{
    static const char since[] = "silent since ";
    struct buf *text = cell_buffer();
    const char *stamp = strstr(detail, since), *end = stamp ? strstr(stamp, " UTC") : NULL;
    int64_t at;

    if (!end)
        return NULL;
    stamp += strlen(since);
    buf_add(text, stamp, (size_t)(end - stamp));
    if (when_parse_sql(text->data, &at, NULL) < 0)
        return NULL;
    buf_reset(text);
    buf_add(text, detail, (size_t)(stamp - detail));
    cell_put_time(text, style, at, false);
    return text->data;
}

/* arg: struct out_style */
static void get_detail(const void *row, const void *arg, struct cell *ret)
{
    const struct out_style *style = arg;
    const char *text = LINE->detail, *people = NULL;

    if (text && style->format == OUT_TABLE && strcmp(LINE->event, "dqd-lost") == 0)
        people = lost_for_people(text, &style->cell);
    cell_set_text(ret, people ? people : text);
}

#define COLUMN_ROW(sql, ...) COLUMN(event_row, NULL, __VA_ARGS__),
static const struct column columns[] = {EVENT_STORE_COLUMNS(COLUMN_ROW)};

/* most 0: all lines. */
static size_t first_line(const struct history *h, size_t most)
{
    return most && h->count > most ? h->count - most : 0;
}

static void print(struct cmd_context *c, const struct history *h, size_t most)
{
    const struct events_values *v = c->values;
    size_t first = first_line(h, most);
    out_all(&c->style, OUT_OF(columns, .names = v->columns), &c->style, h->lines + first,
            sizeof *h->lines, h->count - first);
}

/* The least whole minutes, hours or days of which the span has not too many. */
static int64_t step_of(int64_t span_ms)
{
    static const int64_t steps[] = {WHEN_MINUTE, 5 * WHEN_MINUTE, 15 * WHEN_MINUTE,
                                    WHEN_HOUR,   6 * WHEN_HOUR,   WHEN_DAY};
    size_t i = 0;
    while (i + 1 < sizeof steps / sizeof steps[0] && span_ms / steps[i] > STEPS_MOST)
        i++;
    return steps[i];
}

/* ---- following ---- */

struct following {
    struct seen printed; /* events that were printed */
    struct seen once;    /* events that were seen, with their count */
    int64_t oldest_at;   /* of those that were seen and are not printed yet */
    int64_t back_ms;     /* how far a look goes back */
    int64_t leases_at;   /* when to read the leases */
    int64_t looked_at;   /* the last time */
    bool away;           /* the last look failed */
    /* Until then each look goes back as far as the one before the outage: dqds have yet to record
     * what ended meanwhile. */
    int64_t hold_until;
    bool said; /* a note that some are left out */
};

/* The count of an act of many steps grows: it is printed once it has stayed the same between two
 * looks. */
static bool is_new(uint64_t key, uint64_t count, int64_t at, void *arg)
{
    struct following *f = arg;
    if (seen_has(&f->printed, key))
        return false;
    if (!seen_put(&f->once, text_hash(key, &count, sizeof count))) {
        seen_put(&f->printed, key);
        return true;
    }
    f->oldest_at = MIN(f->oldest_at, at);
    return false;
}

static int read_leases(struct cmd_context *c, struct following *f, struct err *err)
{
    struct poller_info *p;
    size_t count;
    int rc = poller_store_list(c->db, &p, &count, err);
    if (rc < 0)
        return rc;
    f->back_ms = 0;
    for (size_t i = 0; i < count; i++)
        f->back_ms = MAX(f->back_ms, p[i].lease_ms);
    f->back_ms = MIN(f->back_ms, FOLLOW_LEASE_MOST_MS) + FOLLOW_MORE_MS;
    f->leases_at = c->now_at + FOLLOW_LEASES_MS;
    poller_store_free(p, count);
    return 0;
}

static int look(struct cmd_context *c, struct history_ask *ask, struct following *f,
                struct err *err)
{
    LOCAL_BY(history_done) struct history h = {0};
    db_connect_seek_writable(c->db);
    c->now_at = TASK_TIME_NONE;
    int rc = cmd_now(c, &ask->now_at, err);
    if (rc == 0 && ask->now_at >= f->leases_at)
        rc = read_leases(c, f, err);
    if (rc < 0)
        return rc;
    ask->before_at = ask->now_at + WHEN_DAY; /* clocks that were set back */
    f->oldest_at = ask->now_at - f->back_ms;
    rc = history_read(c->db, ask, &h, err);
    if (h.count) {
        print(c, &h, 0);
        c->style.no_header = true;
    }
    if (rc < 0)
        return rc;
    /* what is older was there at the last look */
    bool partial = h.left_at > f->looked_at - FOLLOW_MORE_MS;
    if (partial && !f->said)
        cmd_note(c, "more than %d events or failures at once: some are left out", FOLLOW_MOST);
    f->said |= partial;
    if (f->away)
        f->hold_until = ask->now_at + f->back_ms;
    if (ask->now_at >= f->hold_until)
        ask->since_at = MAX(ask->since_at, f->oldest_at);
    f->looked_at = ask->now_at;
    int64_t keep_ms = MAX(ask->now_at - ask->since_at, HISTORY_RECENT_MS) + WHEN_MINUTE;
    seen_age(&f->printed, ask->now_at, keep_ms);
    seen_age(&f->once, ask->now_at, keep_ms);
    return 0;
}

static int follow(struct cmd_context *c, struct history_ask *ask, struct err *err)
{
    struct following f = {.looked_at = ask->since_at};
    int rc;
    ask->most = FOLLOW_MOST;
    ask->step_ms = WHEN_MINUTE;
    ask->is_new = is_new;
    ask->arg = &f;
    for (;;) {
        rc = look(c, ask, &f, err);
        if (rc < 0 && !err_may_pass(rc))
            break;
        if (rc < 0 && !f.away)
            cmd_note(c, "%s; still following", err->text);
        if (rc == 0 && f.away)
            cmd_note_read_only(c);
        f.away = rc < 0;
        if (out_flush(err) < 0) {
            rc = ERR_SYSTEM;
            break;
        }
        nanosleep(&(struct timespec){FOLLOW_EVERY_S, 0}, NULL);
    }
    seen_done(&f.printed);
    seen_done(&f.once);
    return rc;
}

/* ---- the verb ---- */

static int check_events(const char *list, struct err *err)
{
    for (const char *p = list; p && *p; p += strcspn(p, ","), p += *p == ',') {
        size_t len = strcspn(p, ",");
        if (history_knows(p, len))
            continue;
        MEM_LOCAL char *name = mem_dup(p, len);
        const char *near = history_nearest(name);
        int rc =
            near ? err_set(err, ERR_USAGE, "--event: \"%s\" is no event: did you mean \"%s\"?",
                           name, near)
                 : err_set(err, ERR_USAGE, "--event: \"%s\" is no event: see dq-events(1)", name);
        return rc;
    }
    return 0;
}

static int print_one(struct cmd_context *c, const struct events_values *v, struct err *err)
{
    MEM_LOCAL uint64_t *ids = NULL;
    size_t count = 0;
    LOCAL_BY(history_done) struct history h = {.count = 0};
    if (v->since.text || v->until.text || (v->tag && !v->key) || v->who || v->follow)
        return err_set(err, ERR_USAGE, "the events of one task are all shown: leave out %s",
                       v->follow ? "-f" : "the filter");
    int rc = select_ids(c, v->key, v->tag, false, &ids, &count, err);
    if (rc == 0 && count > 1)
        rc = err_set(err, ERR_USAGE, "give the id of one task");
    if (rc == 0)
        rc = cmd_now(c, &c->style.cell.now_at, err);
    if (rc == 0)
        rc = history_of(c->db, ids[0], &h, err);
    history_keep(&h, &(struct history_ask){.events = v->event, .acts = v->acts});
    if (rc == 0)
        print(c, &h, v->limit > 0 ? (size_t)v->limit : 0);
    if (rc == 0 && h.count == 0)
        select_note_none(c, "no event of the task matches", NULL);
    return rc;
}

static int run(struct cmd_context *c, struct err *err)
{
    const struct events_values *v = c->values;
    if (check_events(v->event, err) < 0 || cmd_open(c, CMD_SCHEMA, err) < 0)
        return err->code;
    if (c->operand_count || v->key)
        return print_one(c, v, err);
    struct history_ask ask = {
        .tag_glob = v->tag, .who_glob = v->who, .events = v->event, .acts = v->acts, .most = MOST};
    LOCAL_BY(history_done) struct history h = {0};
    if (v->follow && c->style.format == OUT_JSON)
        return err_set(err, ERR_USAGE, "-f cannot be combined with -o json; use -o ndjson");
    int rc = cmd_now(c, &ask.now_at, err);
    ask.since_at = ask.now_at - (v->follow ? 0 : DEFAULT_WINDOW_HOURS * WHEN_HOUR);
    ask.before_at = ask.now_at + WHEN_DAY;
    if (rc == 0)
        rc = cmd_resolve(c, &v->since, &ask.since_at, err);
    if (rc == 0)
        rc = cmd_resolve(c, &v->until, &ask.before_at, err);
    if (rc < 0)
        return rc;
    ask.steps_since_at = ask.since_at - (ask.since_at % WHEN_MINUTE);
    if (v->follow)
        return follow(c, &ask, err);
    ask.step_ms = step_of(ask.now_at - ask.since_at);
    ask.steps_since_at = ask.since_at - ask.step_ms;
    size_t most = v->limit > 0 ? (size_t)v->limit : 0;
    rc = history_read(c->db, &ask, &h, err);
    if (rc == 0)
        print(c, &h, most);
    if (rc == 0 && h.count == 0)
        select_note_none(c, "nothing happened in that time", v->tag);
    /* all of the lines asked for may be later than what was left out */
    bool whole = most && h.count >= most && h.lines[first_line(&h, most)].at > h.left_at;
    if (rc == 0 && h.left_at != TASK_TIME_NONE && !whole)
        cmd_note(
            c, "only the newest %d events and failures of that time were read; give a shorter one",
            MOST);
    return rc;
}

#define FIELD(name) offsetof(struct events_values, name)
static const struct cmd_option options[] = {
    {"since", 0, CMD_SINCE, FIELD(since), "TIME|D", NULL, 0},
    {"until", 0, CMD_SINCE, FIELD(until), "TIME|D", NULL, 0},
    {"tag", 't', CMD_TAGS, FIELD(tag), "GLOB", NULL, 0},
    SELECT_KEY(FIELD(key)),
    {"who", 0, CMD_TEXTS, FIELD(who), "GLOB", NULL, 0},
    {"event", 'e', CMD_TEXT, FIELD(event), "E[,E]", NULL, 0},
    {"acts", 0, CMD_FLAG, FIELD(acts), NULL, NULL, 0},
    {"limit", 'n', CMD_COUNT, FIELD(limit), "N", NULL, 1},
    CMD_COLUMNS(FIELD(columns)),
    {"follow", 'f', CMD_FLAG, FIELD(follow), NULL, NULL, 0},
};

const struct cmd cmd_events = {
    .name = "events",
    CMD_OPTIONS(options, events_values),
    .exclusive = "follow until",
    .max_operands = 1,
    .columns = OUT_OF(columns),
    .level = CMD_NOTHING,
    .reads_only = true,
    .formats = OUT_NO_ID,
    .run = run,
};
