/*
 * schedule_words.c - see schedule_words.h. Invariant: what is put, reads as the same schedule.
 */
#include "cli/many/schedule_words.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/when.h"
#include "base/words.h"
#include "base/zone.h"
#include "cli/line/option.h"
#include "cli/show/body.h"

#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#define WITHIN_MAX (366 * WHEN_DAY)

const char *const schedule_words_shifts[] = {
    [TIMETABLE_AS_WRITTEN] = NULL,
    [TIMETABLE_GAP_MOVED] = "the clock skips its time: it runs right afterwards",
    [TIMETABLE_FIRST_OF_TWO] = "the clock shows its time twice: it runs the first time",
};

/* A name is a tag without "@", which in the keys of its tasks is followed by the slot. */
static int check_name(const char *name, struct err *err)
{
    int rc = task_check_tag(name, strlen(name), err);
    if (rc < 0)
        return err_prefix(err, "the name");
    return strchr(name, '@') ? err_set(err, ERR_DATA, "the name \"%s\" has an @", name) : 0;
}

static int check_values(const struct schedule_values *v, struct err *err)
{
    if (!v->cron && !v->every && !v->gap)
        return err_set(err, ERR_USAGE, "a schedule needs --cron, --every or --gap");
    if (v->within_ms > WITHIN_MAX)
        return err_set(err, ERR_USAGE, "--within is at most a year");
    if (v->within_ms >= 0 && v->catch_up == SLOT_CATCH_UP_SKIP)
        return err_set(err, ERR_USAGE, "--within and --catch-up skip cannot be combined");
    return 0;
}

/* {"body":"..."} or {"body_base64":"..."}: any bytes in one line. */
static int read_json(const char *text, struct buf *ret, struct err *err)
{
    static const struct json_member member = {"body", JSON_BYTES, true};
    struct json_value value = {0};
    struct json_reader *r = json_reader_new();
    int rc = json_read_object(r, text, strlen(text), &member, 1, &value, err);
    if (rc < 0)
        err_prefix(err, "--body-json");
    else
        buf_add(ret, value.text, value.len);
    json_reader_free(r);
    return rc;
}

static int take_body(const struct cmd_context *c, struct schedule *s, struct err *err)
{
    const struct schedule_values *v = c->values;
    BUF_LOCAL struct buf body = BUF_INIT;
    int rc = 0;
    if (v->body_json && c->operand_count > 2)
        return err_set(err, ERR_USAGE, "--body-json and BODY cannot be combined");
    if (v->body_json)
        rc = read_json(v->body_json, &body, err);
    else if (c->operand_count > 2)
        rc = body_read(c->operands[2], &body, err);
    if (rc == 0 && body.len > SCHEDULE_ROW_BODY_MOST)
        rc = err_set(err, ERR_DATA, "the body has %zu bytes; a schedule's has %d at most", body.len,
                     SCHEDULE_ROW_BODY_MOST);
    s->body = mem_dup(body.data ? body.data : "", body.len);
    s->body_size = body.len;
    return rc;
}

/* Of the first slots, as many as there are in a day at most; in UTC, where each day has 24 hours.
 * The timetable can be read. */
static int64_t least_period_ms(const struct schedule *s)
{
    char utc[] = "UTC";
    struct schedule in_utc = *s;
    struct err none;

    in_utc.zone = utc;
    struct timetable *t = schedule_row_timetable(&in_utc, &none);
    int64_t at = 0, least_ms = timetable_period_ms(t, at);

    for (int i = 0; i < WHEN_DAY / WHEN_MINUTE && timetable_next(t, at, &at, NULL); i++)
        least_ms = MIN(least_ms, timetable_period_ms(t, at));
    timetable_free(t);
    return least_ms;
}

int schedule_words_take(struct cmd_context *c, struct schedule *ret, struct err *err)
{
    const struct schedule_values *v = c->values;
    const char *word = v->cron ? v->cron : v->every ? v->every : v->gap;
    int rc = check_values(v, err);

    if (rc == 0)
        rc = check_name(c->operands[0], err);
    if (rc == 0)
        rc = task_check_tag(c->operands[1], strlen(c->operands[1]), err);
    if (rc < 0)
        return rc;
    struct schedule s = {
        .name = mem_strdup(c->operands[0]),
        .tag = mem_strdup(c->operands[1]),
        .kind = v->cron    ? TIMETABLE_CRON
                : v->every ? TIMETABLE_EVERY
                           : TIMETABLE_GAP,
        .expression = mem_strdup(word),
        .zone = v->zone   ? mem_strdup(v->zone)
                : v->cron ? zone_local_name()
                          : mem_strdup("UTC"),
        .from_at = TASK_TIME_NONE,
        .to_at = TASK_TIME_NONE,
        .spread_ms = MAX(v->spread_ms, 0),
        .within_ms = MAX(v->within_ms, 0),
        .expires_ms = MAX(v->expires_ms, 0),
        .alarm_after_ms = MAX(v->alarm_after_ms, 0),
        .catch_up = v->catch_up >= 0 ? v->catch_up : SLOT_CATCH_UP_LATEST,
        .overlap = MAX(v->overlap, 0),
    };
    if (!s.zone)
        rc = err_set(err, ERR_USAGE, "the time zone of this host has no name; give --zone");
    if (rc == 0)
        rc = take_body(c, &s, err);
    if (rc == 0)
        rc = cmd_resolve(c, &v->from, &s.from_at, err);
    if (rc == 0)
        rc = cmd_resolve(c, &v->to, &s.to_at, err);
    if (rc == 0) {
        struct timetable *t = schedule_row_timetable(&s, err);
        rc = t ? 0 : ERR_DATA;
        /* whether the last run lives is asked at the slot, not when its task is due */
        if (t && s.kind != TIMETABLE_GAP && s.spread_ms && s.spread_ms > least_period_ms(&s) / 2)
            rc = err_set(err, ERR_USAGE, "--spread: at most half of the time between slots");
        timetable_free(t);
    }
    if (rc < 0)
        schedule_row_done(&s);
    else
        *ret = s;
    return rc;
}

int schedule_words_read(struct cmd_context *c, const struct cmd *set, const char *line,
                        struct schedule *ret, struct err *err)
{
    char **words;
    size_t count = 0;

    line += strspn(line, " \t");
    if (*line == '\0' || *line == '#')
        return 0;
    char *all = mem_printf("set %s", line);
    bool split = words_split(all, &words);
    free(all);
    if (!split)
        return err_set(err, ERR_DATA,
                       "a word needs quotes, or a quote has no end; write '*/5 * * * *' with them");
    while (words[count])
        count++;
    struct cmd_context own = {.cmd = set, .now_at = c->now_at};
    int rc = option_parse_own(&own, (int)count, words, err);
    const struct schedule_values *v = own.values;
    if (rc == 0 && (own.operand_count < 2 || own.help || own.version || v->only_new))
        rc = err_set(err, ERR_USAGE, "a line is NAME TAG [BODY] and options of dq schedule set");
    own.conf = c->conf;
    own.db = c->db;
    own.checked = c->checked;
    if (rc == 0)
        rc = schedule_words_take(&own, ret, err);
    own.conf = NULL;
    own.db = NULL;
    cmd_close(&own);
    free(words);
    return rc < 0 ? rc : 1;
}

/* Whether its body can stand in a line, and on a terminal, as it is. */
static bool is_word(const struct schedule *s)
{
    const char *body = s->body;
    BUF_LOCAL struct buf inert = BUF_INIT;
    text_escape(&inert, body, s->body_size, 0);
    return !strchr("-@", body[0]) && inert.len == s->body_size &&
           memcmp(inert.data, body, inert.len) == 0;
}

void schedule_words_put(struct buf *b, const struct cmd *set, const struct schedule *s)
{
    char from[WHEN_TEXT_SIZE], to[WHEN_TEXT_SIZE];
    struct schedule_values v = {
        .cron = s->kind == TIMETABLE_CRON ? s->expression : NULL,
        .every = s->kind == TIMETABLE_EVERY ? s->expression : NULL,
        .gap = s->kind == TIMETABLE_GAP ? s->expression : NULL,
        .zone = s->kind == TIMETABLE_CRON ? s->zone : NULL,
        .from.text = s->from_at == TASK_TIME_NONE ? NULL : when_format_utc(from, s->from_at),
        .to.text = s->to_at == TASK_TIME_NONE ? NULL : when_format_utc(to, s->to_at),
        .spread_ms = s->spread_ms ? s->spread_ms : -1,
        .within_ms = s->within_ms ? s->within_ms : -1,
        .expires_ms = s->expires_ms ? s->expires_ms : -1,
        .alarm_after_ms = s->alarm_after_ms ? s->alarm_after_ms : -1,
        .catch_up = s->catch_up == SLOT_CATCH_UP_LATEST ? -1 : s->catch_up,
        .overlap = s->overlap == SLOT_OVERLAP_SKIP ? -1 : s->overlap,
    };
    const struct cmd_context c = {.cmd = set, .values = &v};
    BUF_LOCAL struct buf json = BUF_INIT;

    buf_chr(&json, '{');
    text_shell_word(b, s->name);
    buf_chr(b, ' ');
    text_shell_word(b, s->tag);
    if (s->body_size && is_word(s)) {
        buf_chr(b, ' ');
        text_shell_word(b, s->body);
    } else if (s->body_size) {
        json_put_bytes(&json, "body", s->body, s->body_size);
        buf_chr(&json, '}');
        v.body_json = json.data;
    }
    option_put_given(b, &c, true);
}

void schedule_words_put_sentence(struct buf *b, const struct schedule *s)
{
    struct err none;
    struct timetable *t = schedule_row_timetable(s, &none);
    if (t)
        timetable_put(b, t);
    else
        buf_str(b, s->expression);
    timetable_free(t);
}

void schedule_words_put_changed(struct buf *b, unsigned changed)
{
    const char *separator = "";
    for (unsigned i = 0; i < SCHEDULE_ROW_SET_END; i++) {
        if (!(changed & 1u << i))
            continue;
        buf_printf(b, "%s%s", separator, schedule_row_columns[i].name);
        separator = ", ";
    }
}
