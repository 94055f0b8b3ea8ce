/*
 * cmd_quiet.c - dq quiet: the dqds of a host claim nothing until dq unquiet, or until the time is
 * up. And dq unquiet.
 */
#include "cli/line/verbs.h"
#include "cli/many/act.h"
#include "store/fleet/poller_store.h"
#include "store/fleet/limit_store.h"

#include "base/mem.h"

#include <inttypes.h>
#include <string.h>

struct quiet_values {
    int64_t for_ms;
};

/* "HOST" or "HOST:PID" of a dqd that is alive, or was within a day. *ret_running: its handlers. */
static int check(struct cmd_context *c, const char *name, uint64_t *ret_running, struct err *err)
{
    struct poller_info *p;
    size_t count;
    bool known = false;
    int rc = poller_store_list(c->db, &p, &count, err);
    if (rc < 0)
        return rc;
    *ret_running = 0;
    for (size_t i = 0; i < count; i++) {
        MEM_LOCAL char *one = mem_printf("%s:%" PRIu32, p[i].host, p[i].pid);
        bool same = strcmp(name, p[i].host) == 0 || strcmp(name, one) == 0;
        known |= same;
        *ret_running += same && p[i].alive ? (uint64_t)p[i].running : 0;
    }
    poller_store_free(p, count);
    return known
               ? 0
               : err_set(err, ERR_NOT_FOUND, "no dqd of %s is known; dq pollers lists them", name);
}

static int quiet(struct cmd_context *c, const void *values, struct err *err)
{
    const struct quiet_values *v = values;
    const char *name = c->operands[0];
    uint64_t running;
    MEM_LOCAL char *row = mem_printf(LIMIT_STORE_DQD "%s", name);
    LOCAL_BY(act_done) struct act act = {0};
    if (v->for_ms == 0)
        return err_set(err, ERR_USAGE, "--for must be longer than 0; dq unquiet ends it");
    int rc = check(c, name, &running, err);
    if (rc < 0)
        return rc;
    act_init(&act, c, NULL, 0);
    act.event.tag = row;
    rc = limit_store_pause(c->db, &act.event, false, v->for_ms >= 0 ? TASK_TIME_NONE : INT64_MAX,
                           v->for_ms, NULL, err);
    if (rc < 0)
        return rc;
    cmd_note(c,
             "%s is quiet from its next heartbeat on; %" PRIu64
             " handler%s continue%s. To end it: dq unquiet %s",
             name, running, running == 1 ? "" : "s", running == 1 ? "s" : "", name);
    return 0;
}

static const struct cmd_option options[] = {
    {"for", 0, CMD_DURATION, offsetof(struct quiet_values, for_ms), "D", NULL, 0},
};

const struct cmd cmd_quiet = {
    .name = "quiet",
    CMD_OPTIONS(options, quiet_values),
    .min_operands = 1,
    .run = quiet,
};

static int unquiet(struct cmd_context *c, const void *values __attribute__((unused)),
                   struct err *err)
{
    const char *name = c->operands[0];
    MEM_LOCAL char *row = mem_printf(LIMIT_STORE_DQD "%s", name);
    LOCAL_BY(act_done) struct act act = {0};

    act_init(&act, c, NULL, 0);
    act.event.tag = row;
    int rc = limit_store_resume(c->db, &act.event, err);
    if (rc == 0)
        return err_set(err, ERR_NOT_FOUND, "%s is not quiet", name);
    if (rc > 0)
        cmd_note(c, "%s claims tasks again from its next heartbeat on", name);
    return rc < 0 ? rc : 0;
}

const struct cmd cmd_unquiet = {
    .name = "unquiet",
    .min_operands = 1,
    .run = unquiet,
};
