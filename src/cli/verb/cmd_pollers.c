/*
 * cmd_pollers.c - dq pollers: which dqd processes look for due tasks.
 */
#include "cli/judge/fleet.h"
#include "cli/line/verbs.h"
#include "store/fleet/poller_store.h"

#include <inttypes.h>
#include <stdio.h>

#define POLLER ((const struct poller_info *)row)

OUT_GETTER(host)
{
    cell_set_text(ret, POLLER->host);
}

OUT_GETTER(pid)
{
    cell_set_number(ret, POLLER->pid);
}

OUT_GETTER(mode)
{
    cell_set_text(ret, POLLER->mode);
}

OUT_GETTER(slots)
{
    cell_set_number(ret, (uint64_t)POLLER->slots);
}

OUT_GETTER(running)
{
    if (POLLER->alive)
        cell_set_number(ret, (uint64_t)POLLER->running);
}

OUT_GETTER(started)
{
    cell_set_time(ret, POLLER->started_at);
}

OUT_GETTER(last_seen)
{
    cell_set_time(ret, POLLER->last_seen_at);
}

OUT_GETTER(version)
{
    cell_set_text(ret, POLLER->version);
}

OUT_GETTER(next_pass)
{
    cell_set_time(ret, POLLER->next_pass_at);
}

OUT_GETTER(alive)
{
    ret->kind = CELL_BOOL;
    ret->number = POLLER->alive;
    ret->colour = POLLER->alive ? CELL_GOOD : CELL_BAD;
    if (poller_store_is_between(POLLER))
        ret->people = "between passes";
}

#define TABLE_COLUMNS "host,pid,mode,slots,running,started,last_seen,version,alive"
static const struct out_column columns[] = {
    {"host", false, OUT_NARROW, "", get_host},  {"pid", true, 0, "", get_pid},
    {"mode", false, 0, "", get_mode},           {"slots", true, 0, "", get_slots},
    {"running", true, 0, "", get_running},      {"started", false, 0, "", get_started},
    {"last_seen", false, 0, "", get_last_seen}, {"version", false, 0, "", get_version},
    {"alive", false, 0, "", get_alive},         {"next_pass", false, 0, "", get_next_pass},
};

/* ---- with -v: a row for each handler ---- */

struct served {
    const struct fleet *fleet;
    const struct poller_info *dqd;
    const struct handler_row *handler; /* NULL: it has none, is not alive, or they are not known */
    char digest[17];
};

#define SERVED ((const struct served *)row)
/* A getter for a number of the handler. */
#define HANDLER_NUMBER(name, field)                                                                \
    OUT_GETTER(name)                                                                               \
    {                                                                                              \
        if (SERVED->handler)                                                                       \
            cell_set_number(ret, SERVED->handler->field);                                          \
    }

OUT_GETTER(served_host)
{
    cell_set_text(ret, SERVED->dqd->host);
}

OUT_GETTER(served_pid)
{
    cell_set_number(ret, SERVED->dqd->pid);
}

OUT_GETTER(served_alive)
{
    get_alive(SERVED->dqd, NULL, ret);
}

OUT_GETTER(handler)
{
    if (SERVED->handler)
        cell_set_text(ret, SERVED->handler->pattern);
}

/* The tags of --tag, which apply to all its handlers. */
OUT_GETTER(tags)
{
    cell_set_text(ret, SERVED->dqd->tags);
}

OUT_GETTER(file)
{
    cell_set_text(ret, SERVED->dqd->handlers_file);
}

OUT_GETTER(digest)
{
    if (SERVED->handler)
        cell_set_text(ret, SERVED->digest);
}

OUT_GETTER(timeout)
{
    if (SERVED->handler) {
        ret->kind = CELL_DURATION;
        ret->at = SERVED->handler->timeout_ms;
    }
}

HANDLER_NUMBER(line, line)
HANDLER_NUMBER(batch, batch)
HANDLER_NUMBER(max_running, max_running)
HANDLER_NUMBER(max_attempts, max_attempts)

/* 0: no limit. */
OUT_GETTER(global_max_running)
{
    if (SERVED->handler && SERVED->handler->global_max_running)
        cell_set_number(ret, SERVED->handler->global_max_running);
}

/* The first of its tags that rests. */
OUT_GETTER(resting)
{
    const struct fleet *f = SERVED->fleet;
    for (size_t i = 0; SERVED->handler && ret->kind == CELL_NULL && i < f->rest_count; i++) {
        const struct handler_row *h;
        const char *tag = f->rests[i].tag;
        if (f->rests[i].reason == HANDLER_RESTS &&
            fleet_rest(f, SERVED->dqd, tag) == &f->rests[i] &&
            fleet_dqd_serves(f, SERVED->dqd, tag, &h) == FLEET_SERVES && h == SERVED->handler) {
            cell_set_text(ret, tag);
            ret->colour = CELL_BAD;
        }
    }
}

static const struct out_column served_columns[] = {
    {"host", false, OUT_NARROW, "", get_served_host},
    {"pid", true, 0, "", get_served_pid},
    {"alive", false, 0, "", get_served_alive},
    {"handler", false, OUT_NARROW, "", get_handler},
    {"max_running", true, 0, "", get_max_running},
    {"global_max_running", true, 0, "", get_global_max_running},
    {"batch", true, 0, "", get_batch},
    {"max_attempts", true, 0, "", get_max_attempts},
    {"timeout", true, 0, "", get_timeout},
    {"resting", false, OUT_NARROW, "", get_resting},
    {"line", true, 0, "", get_line},
    {"handlers_file", false, OUT_NARROW, "", get_file},
    {"tags", false, OUT_NARROW, "", get_tags},
    {"digest", false, 0, "", get_digest},
};
#define SERVED_COUNT (sizeof served_columns / sizeof served_columns[0])
#define SERVED_TABLE                                                                               \
    "host,pid,alive,handler,max_running,global_max_running,batch,max_attempts,timeout,resting,line"
#define SERVED_DROP "max_attempts,batch,timeout,global_max_running,line"

static void put_served(struct out *out, const struct fleet *f, const struct poller_info *dqd)
{
    struct served s = {.fleet = f, .dqd = dqd};
    size_t count;
    const struct handler_row *rows = fleet_handlers(f, dqd, &count);
    for (size_t i = 0; i < count; i++) {
        s.handler = &rows[i];
        snprintf(s.digest, sizeof s.digest, "%016" PRIx64, rows[i].digest);
        out_row(out, &s);
    }
    if (count == 0)
        out_row(out, &s);
}

static int list_served(struct cmd_context *c, struct err *err)
{
    struct fleet f;
    struct out *out;
    int rc = fleet_load(c->db, &f, err);
    if (rc == 0)
        rc = out_new(&out, &c->style, served_columns, SERVED_COUNT,
                     c->style.format == OUT_TABLE ? SERVED_TABLE : NULL, NULL, err);
    if (rc == 0)
        out_may_drop(out, SERVED_DROP);
    for (size_t i = 0; rc == 0 && i < f.count; i++)
        put_served(out, &f, &f.dqds[i]);
    if (rc == 0)
        rc = out_end(out, rc);
    fleet_done(&f);
    return rc;
}

static int run(struct cmd_context *c, const void *values __attribute__((unused)), struct err *err)
{
    struct poller_info *pollers;
    struct out *out;
    size_t count;
    if (c->verbose)
        return list_served(c, err);
    int rc = poller_store_list(c->db, &pollers, &count, err);
    if (rc < 0)
        return rc;
    rc = out_new(&out, &c->style, columns, sizeof columns / sizeof columns[0],
                 c->style.format == OUT_TABLE ? TABLE_COLUMNS : NULL, NULL, err);
    if (rc == 0)
        out_may_drop(out, "started,mode");
    for (size_t i = 0; rc == 0 && i < count; i++)
        out_row(out, &pollers[i]);
    if (rc == 0)
        rc = out_end(out, rc);
    poller_store_free(pollers, count);
    return rc;
}

const struct cmd cmd_pollers = {
    .name = "pollers",
    .group = "look",
    .summary = "list the dqd processes, and whether they are alive; -v: what they serve",
    .usage = "[-v]",
    .details =
        "A dqd that crashed stays in the list for a day, as not alive. A dqd that a timer starts "
        "counts as alive until three intervals after its last pass. With -v, lists each handler "
        "of each live dqd.",
    .level = CMD_SCHEMA,
    .reads_only = true,
    .pages = true,
    .formats = OUT_NO_ID,
    .examples = "dq pollers\n"
                "dq pollers -v",
    .run = run,
};
