/*
 * care.c - tags some of whose tasks cannot be claimed. Invariant: only what is locked, refused or
 * too long waits, and the log names it once.
 */
#include "poller/care.h"

#include "base/log.h"
#include "base/when.h"
#include "poller/trouble.h"
#include "store/row/rows.h"
#include "store/work/claim_store.h"

#include <inttypes.h>
#include <stdlib.h>

/* Whatever wrote a wrong body_size is likely to go on: claims bring no bodies for this long. */
#define BARE_US INT64_C(600000000)

/* A lock of another dqd ends with its claim: no operator has to act. */
static bool say_claimer(struct db *db, const struct tag_state *t)
{
    char *claimer = NULL;
    struct err err;

    if (!db || t->aside.last.err.code != ERR_LOCKED ||
        claim_store_claimer(db, t->aside.last.id, &claimer, &err) != 1)
        return false;
    log_event(LOG_INFO, "another dqd is claiming some due tasks",
              "tag=%s tasks=%zu id=%" PRIu64 " dqd=%s", log_quote(t->name), t->aside.count,
              t->aside.last.id, log_quote(claimer));
    free(claimer);
    return true;
}

static void say(struct db *db, const struct tag_state *t)
{
    if (say_claimer(db, t))
        return;
    log_event(t->aside.last.err.code == ERR_LOCKED ? LOG_WARN : LOG_ERROR,
              "some due tasks cannot be claimed; others of their tag are not affected",
              "tag=%s tasks=%zu id=%" PRIu64 " error=%s", log_quote(t->name), t->aside.count,
              t->aside.last.id, log_quote(t->aside.last.err.text));
}

static void say_limit(const struct tag_state *t, const char *why)
{
    log_event(LOG_WARN, "tasks of a tag cannot be claimed; other tags are not affected",
              "tag=%s error=%s", log_quote(t->name), log_quote(why));
}

void care_say_left(const struct tag_set *tags)
{
    const struct tag_state *t;

    for (size_t at = 0; (t = tags_each(tags, &at));)
        if (t->aside.count && !t->aside.said_us)
            say(NULL, t);
        else if (t->limit_since_us && !t->limit_said_us &&
                 tags_is_due(tags, t)) /* else others have taken all of it since */
            say_limit(t, LIMIT_LOCKED_TEXT);
}

void care_put_aside(struct db *db, struct tag_state *t, const struct rows_faults *f, int64_t now_us)
{
    bool said = t->aside.said_us;

    aside_put(&t->aside, f, now_us);
    if (aside_news(&t->aside, now_us))
        say(db, t);
    else if (aside_over(&t->aside))
        log_event(LOG_INFO, "all due tasks can be claimed again", "tag=%s", log_quote(t->name));
    t->set->rests_changed |= said != !!t->aside.said_us;
    care_refused(t, NULL);
}

void care_refused(struct tag_state *t, const struct err *err)
{
    if (err)
        t->refusal = *err;
    t->set->rests_changed |= !t->refused_us != !err;
    t->refused_us = err ? when_steady_us() : 0;
}

void care_look_refused(struct tag_set *tags, const struct err *err)
{
    if (err)
        tags->refusal = *err;
    tags->rests_changed |= !tags->refused_us != !err;
    tags->refused_us = err ? when_steady_us() : 0;
}

void care_limit_locked(struct tag_state *t, const struct err *err)
{
    int64_t now_us = when_steady_us();

    if (!t->limit_since_us)
        t->limit_since_us = now_us;
    if (now_us - t->limit_since_us < TROUBLE_LOCK_US ||
        (t->limit_said_us && now_us - t->limit_said_us < TROUBLE_AGAIN_US))
        return;
    t->limit_said_us = now_us;
    say_limit(t, err->text);
}

void care_limit_free(struct tag_state *t)
{
    if (t->limit_said_us)
        log_event(LOG_INFO, "tasks of the tag can be claimed again", "tag=%s", log_quote(t->name));
    t->limit_since_us = t->limit_said_us = 0;
}

void care_slow(struct tag_state *t)
{
    char text[WHEN_TEXT_SIZE];

    if (t->look.slow == t->slow_said)
        return;
    t->slow_said = t->look.slow;
    t->set->rests_changed = true;
    log_event(t->slow_said ? LOG_WARN : LOG_INFO,
              t->slow_said ? "changing a task of the tag takes long, so that is done one by one"
                           : "tasks of the tag can be changed quickly again",
              "tag=%s took=%s", log_quote(t->name),
              when_format_duration(text, look_tag_row_us(&t->look) / 1000));
}

void care_long_bodies(struct tag_state *t, int64_t now_us)
{
    t->bare_us = now_us + BARE_US;
}
