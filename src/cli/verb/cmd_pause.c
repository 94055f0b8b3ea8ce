/*
 * cmd_pause.c - dq pause: no task of a tag, or of all tags that match a glob, is started until it
 * is resumed or the time is up.
 */
#include "cli/judge/fleet.h"
#include "cli/line/confirm.h"
#include "cli/line/select.h"
#include "cli/line/verbs.h"
#include "cli/many/act.h"
#include "store/ask/tag_store.h"
#include "store/fleet/limit_store.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/when.h"

#include <inttypes.h>
#include <string.h>

struct pause_values {
    bool all;
    int64_t for_ms;
    struct cmd_when until;
    const char *reason;
};

/* Accepts a tag that dq add would accept, one that tasks of an application have, or a glob. In
 * other names a blank is a typing error, and the pause would have no effect. *ret_match: so many
 * tags match the glob now; -1: it is a tag. */
static int check(struct cmd_context *c, const char *tag, int64_t *ret_match, struct err *err)
{
    struct tag_info *tags;
    size_t count;
    int64_t now_at;
    bool known = false;
    *ret_match = -1;
    if (task_check_tag(tag, strlen(tag), err) == 0)
        return 0;
    int rc = tag_store_list(c->db, tag, &(struct tag_count_how){.exact = false}, &tags, &count,
                            &now_at, NULL);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < count; i++)
        known = known || strcmp(tags[i].tag, tag) == 0;
    tag_store_free(tags, count);
    if (known)
        return 0;
    *ret_match = (int64_t)count;
    return strpbrk(tag, "*?") ? task_check_tag_glob(tag, strlen(tag), err)
                              : task_check_tag(tag, strlen(tag), err);
}

/* Until when, for people: " until 2026-11-21 09:00:00.000 +01:00", " for 1h" or nothing. */
static void put_end(struct buf *b, const struct pause_values *v, int64_t until_at)
{
    char text[WHEN_TEXT_SIZE];
    if (v->until.text)
        buf_printf(b, " until %s", when_format_local(text, until_at));
    else if (v->for_ms >= 0)
        buf_printf(b, " for %s", when_format_duration(text, v->for_ms));
}

static int run(struct cmd_context *c, const void *values, struct err *err)
{
    const struct pause_values *v = values;
    const char *tag = v->all ? "*" : c->operands[0];
    int64_t match, until_at = v->for_ms >= 0 ? TASK_TIME_NONE : INT64_MAX;
    int64_t now_at;
    BUF_LOCAL struct buf end = BUF_INIT, word = BUF_INIT;
    LOCAL_BY(act_done) struct act act = {0};
    size_t chars;
    if (v->for_ms == 0)
        return err_set(err, ERR_USAGE, "--for must be longer than 0; use dq resume to end a pause");
    if (v->reason && (!json_utf8_valid(v->reason, strlen(v->reason), &chars, NULL) || chars > 255))
        return err_set(err, ERR_DATA, "--reason: at most 255 characters of UTF-8");
    if (v->all && c->operand_count)
        return err_set(err, ERR_USAGE, "--all and a tag cannot be combined");
    int rc = check(c, tag, &match, err);
    if (rc == 0)
        rc = cmd_resolve(c, &v->until, &until_at, err);
    if (rc == 0 && v->until.text)
        rc = cmd_now(c, &now_at, err);
    if (rc != 0)
        return rc;
    if (v->until.text && until_at <= now_at)
        return err_set(err, ERR_USAGE, "--until: %s is in the past", v->until.text);
    act_init(&act, c, NULL, 0);
    act.event.tag = tag;
    rc = limit_store_pause(c->db, &act.event, match >= 0, until_at, v->for_ms, v->reason, err);
    if (rc < 0)
        return rc;
    put_end(&end, v, until_at);
    text_shell_word(&word, tag);
    cmd_note(c, "%s is paused%s; running handlers continue. To resume: dq resume %s", tag,
             end.len ? end.data : "", word.data);
    if (match >= 0)
        cmd_note(c, "%" PRId64 " tag%s now; tags that appear later are paused, too", match,
                 match == 1 ? " matches" : "s match");
    else if (!fleet_note_tag(c, tag))
        select_note_nearest(c, tag);
    return 0;
}

#define FIELD(name) offsetof(struct pause_values, name)
static const struct cmd_option options[] = {
    {"all", 0, CMD_FLAG, FIELD(all), NULL, NULL, 0},
    {"for", 0, CMD_DURATION, FIELD(for_ms), "D", NULL, 0},
    {"until", 0, CMD_INSTANT, FIELD(until), "TIME", NULL, 0},
    {"reason", 0, CMD_TEXT, FIELD(reason), "TEXT", NULL, 0},
};

const struct cmd cmd_pause = {
    .name = "pause",
    CMD_OPTIONS(options, pause_values),
    .exclusive = "for until",
    .min_operands = 1,
    .instead = "all",
    .run = run,
};
