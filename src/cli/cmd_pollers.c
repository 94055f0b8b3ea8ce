/*
 * cmd_pollers.c - dq pollers: which dqd processes look for due tasks.
 */
#include "cli/verbs.h"
#include "store/poller_store.h"

#define POLLER ((const struct poller_info *)row)
#define GETTER(name)                                                                               \
    static void get_##name(const void *row, const void *arg __attribute__((unused)),               \
                           struct cell *ret)

GETTER(host)
{
    cell_set_text(ret, POLLER->host);
}

GETTER(pid)
{
    cell_set_number(ret, POLLER->pid);
}

GETTER(mode)
{
    cell_set_text(ret, POLLER->mode);
}

GETTER(slots)
{
    cell_set_number(ret, (uint64_t)POLLER->slots);
}

GETTER(running)
{
    cell_set_number(ret, (uint64_t)POLLER->running);
}

GETTER(started)
{
    cell_set_time(ret, POLLER->started_at);
}

GETTER(last_seen)
{
    cell_set_time(ret, POLLER->last_seen_at);
}

GETTER(version)
{
    cell_set_text(ret, POLLER->version);
}

GETTER(alive)
{
    ret->kind = CELL_BOOL;
    ret->number = POLLER->alive;
    ret->colour = POLLER->alive ? CELL_GOOD : CELL_BAD;
}

static const struct out_column columns[] = {
    {"host", false, OUT_NARROW, "", get_host},  {"pid", true, 0, "", get_pid},
    {"mode", false, 0, "", get_mode},           {"slots", true, 0, "", get_slots},
    {"running", true, 0, "", get_running},      {"started", false, 0, "", get_started},
    {"last_seen", false, 0, "", get_last_seen}, {"version", false, 0, "", get_version},
    {"alive", false, 0, "", get_alive},
};

static int run(struct cmd_context *c, const void *values __attribute__((unused)), struct err *err)
{
    struct poller_info *pollers;
    struct out *out;
    size_t count;
    int rc = poller_store_list(c->db, &pollers, &count, err);
    if (rc < 0)
        return rc;
    rc = out_new(&out, &c->style, columns, sizeof columns / sizeof columns[0], NULL, NULL, err);
    for (size_t i = 0; rc == 0 && i < count; i++)
        out_row(out, &pollers[i]);
    if (rc == 0)
        out_free(out);
    poller_store_free(pollers, count);
    return rc;
}

const struct cmd cmd_pollers = {
    .name = "pollers",
    .group = "tags and statistics",
    .summary = "list the dqd processes and whether they are alive",
    .usage = "",
    .details = "A dqd that crashed stays in the list for a day, as not alive.",
    .level = CMD_SCHEMA,
    .reads_only = true,
    .formats = OUT_NO_ID,
    .examples = "dq pollers",
    .run = run,
};
