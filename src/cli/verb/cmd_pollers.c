/*
 * cmd_pollers.c - dq pollers: which dqd processes look for due tasks.
 */
#include "cli/judge/fleet.h"
#include "cli/line/select.h"
#include "cli/line/verbs.h"
#include "store/fleet/poller_store.h"

#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define POLLER ((const struct poller_info *)row)

OUT_GETTER(running)
{
    if (POLLER->alive)
        cell_set_number(ret, (uint64_t)POLLER->running);
}

OUT_GETTER(alive)
{
    cell_set_bool(ret, POLLER->alive);
    ret->colour = POLLER->alive ? CELL_GOOD : CELL_BAD;
    if (POLLER->alive && POLLER->quiet)
        ret->people = "quiet";
    else if (poller_store_is_between(POLLER))
        ret->people = "between passes";
}

struct pollers_values {
    const char *columns;
};

#define COLUMN_ROW(sql, ...) COLUMN(poller_info, NULL, __VA_ARGS__),
static const struct column columns[] = {POLLER_STORE_COLUMNS(COLUMN_ROW)};
#define TABLE_COLUMNS "host,pid,mode,slots,running,started,last_seen,version,alive"
#define TABLE_DROP "started,mode"

/* ---- with -v: a row for each handler ---- */

struct served {
    struct poller_info dqd;
    struct handler_row handler; /* pattern NULL: it has none, is not alive, or they are not known */
    const struct handler_row *of;
    const struct fleet *fleet;
    char digest[17];
};

#define SERVED ((const struct served *)row)

OUT_GETTER(timeout)
{
    if (SERVED->of)
        cell_set_duration(ret, SERVED->of->timeout_ms);
}

/* The first of its tags that rests. */
OUT_GETTER(resting)
{
    const struct fleet *f = SERVED->fleet;
    for (size_t i = 0; SERVED->of && ret->kind == CELL_NULL && i < f->rest_count; i++) {
        const struct handler_row *h;
        const char *tag = f->rests[i].tag;
        if (f->rests[i].reason == HANDLER_RESTS &&
            fleet_rest(f, &SERVED->dqd, tag) == &f->rests[i] &&
            fleet_dqd_serves(f, &SERVED->dqd, tag, &h) == FLEET_SERVES && h == SERVED->of) {
            cell_set_text(ret, tag);
            ret->colour = CELL_BAD;
        }
    }
}

OUT_GETTER(kept)
{
    const struct fleet *f = SERVED->fleet;
    for (size_t i = 0; SERVED->of && i < f->rest_count; i++)
        if (f->rests[i].reason == HANDLER_KEPT &&
            memcmp(f->rests[i].token, SERVED->dqd.token, TASK_TOKEN_SIZE) == 0 &&
            strcmp(f->rests[i].tag, SERVED->of->pattern) == 0)
            cell_set_text(ret, f->rests[i].error);
}

/* clang-format off */
#define SERVED_FIELD(name, type, field, max, help) COLUMN(served, NULL, name, type, field, max, 0, NULL, help)
#define SERVED_GET(name, type, max, get, help) {NULL, name, COLUMN_##type, 0, max, 0, get, help}
static const struct column served_columns[] = {
    SERVED_FIELD("host", NAME, dqd.host, COLUMN_NARROW, "where it runs"),
    SERVED_FIELD("pid", U32, dqd.pid, 0, "its process id"),
    SERVED_GET("alive", BOOL, 0, get_alive, "whether the dqd is alive"),
    SERVED_FIELD("handler", TEXT, handler.pattern, COLUMN_NARROW, "the handler, by its name in the handlers file"),
    SERVED_FIELD("max_running", SOME, handler.max_running, 0, "how many of its processes may run on this host"),
    SERVED_FIELD("global_max_running", SOME, handler.global_max_running, 0, "how many may run on all hosts"),
    SERVED_FIELD("batch", SOME, handler.batch, 0, "how many tasks a process takes at a time"),
    SERVED_FIELD("max_attempts", SOME, handler.max_attempts, 0, "attempts of a task before it fails for good"),
    SERVED_GET("timeout", MS, 0, get_timeout, "how long a process may run"),
    SERVED_GET("resting", TEXT, COLUMN_NARROW, get_resting, "a tag of the handler that rests, because it could not be started"),
    SERVED_FIELD("line", SOME, handler.line, 0, "where the handler stands in the file"),
    SERVED_FIELD("handlers_file", TEXT, dqd.handlers_file, COLUMN_NARROW, "the file"),
    SERVED_FIELD("tags", TEXT, dqd.tags, COLUMN_NARROW, "the tags to which --tag restricts the dqd"),
    SERVED_FIELD("digest", CHARS, digest, 0, "of the settings of the handler: equal on two hosts if these are"),
    SERVED_GET("kept", TEXT, COLUMN_NARROW, get_kept, "processes that stay: busy, idle, memory, replaced and why"),
};
/* clang-format on */
#define SERVED_COLUMNS                                                                             \
    "host,pid,alive,handler,max_running,global_max_running,batch,max_attempts,timeout,resting,"    \
    "kept,line"
#define SERVED_DROP "max_attempts,batch,timeout,global_max_running,line"

static void note_none(struct cmd_context *c, size_t count)
{
    if (count == 0)
        select_note_none(c, "no dqd is alive, and none was lost within a day", NULL);
}

static void put_served(struct out *out, const struct fleet *f, const struct poller_info *dqd)
{
    struct served s = {.fleet = f, .dqd = *dqd};
    size_t count;
    const struct handler_row *rows = fleet_handlers(f, dqd, &count);
    for (size_t i = 0; i < count; i++) {
        s.of = &rows[i];
        s.handler = rows[i];
        snprintf(s.digest, sizeof s.digest, "%016" PRIx64, rows[i].digest);
        out_row(out, &s);
    }
    if (count == 0)
        out_row(out, &s);
}

static int list_served(struct cmd_context *c, const char *names, struct err *err)
{
    LOCAL_BY(fleet_done) struct fleet f = {0};
    int rc = fleet_load(c->db, &f, err);
    if (rc < 0)
        return rc;
    struct out *out =
        out_new(&c->style, OUT_OF(served_columns, SERVED_COLUMNS, SERVED_DROP, names), NULL);
    for (size_t i = 0; i < f.count; i++)
        put_served(out, &f, &f.dqds[i]);
    out_end(out, 0);
    note_none(c, f.count);
    return 0;
}

static int list(struct cmd_context *c, const char *names, struct err *err)
{
    struct poller_info *pollers;
    size_t count;
    int rc = poller_store_list(c->db, &pollers, &count, err);
    if (rc < 0)
        return rc;
    out_all(&c->style, OUT_OF(columns, TABLE_COLUMNS, TABLE_DROP, names), NULL, pollers,
            sizeof *pollers, count);
    note_none(c, count);
    poller_store_free(pollers, count);
    return 0;
}

static int run(struct cmd_context *c, struct err *err)
{
    const struct pollers_values *v = c->values;
    return c->verbose ? list_served(c, v->columns, err) : list(c, v->columns, err);
}

static const struct cmd_option options[] = {
    CMD_COLUMNS(offsetof(struct pollers_values, columns)),
};

const struct cmd cmd_pollers = {
    .name = "pollers",
    CMD_OPTIONS(options, pollers_values),
    .columns = OUT_OF(columns),
    .verbose_columns = OUT_OF(served_columns),
    .pages = true,
    .formats = OUT_NO_ID,
    .run = run,
};
