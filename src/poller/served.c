/*
 * served.c - see served.h. Invariant: nothing that keeps a promise waits for these records. They
 * are written after all else that is due, and a failure delays only themselves.
 */
#include "poller/served.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/when.h"
#include "store/fleet/handler_store.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

/* The handlers are looked for this often, in case something has deleted them. */
#define LOOK_EVERY_US INT64_C(60000000)
/* What has no end of its own is written again with each look. */
#define LASTING_MS (3 * LOOK_EVERY_US / 1000)
/* Tags that begin to rest one after the other are written together. */
#define RESTS_EVERY_US INT64_C(1000000)
#define LOCKED_AGAIN_US INT64_C(20000000)
/* More at a time are not written: tags of one glob are many, but have one reason to rest. */
#define RESTS_MOST 200
#define REST_ERROR_MOST 1000 /* bytes of it */

void served_init(struct served *s, const struct context *ctx, struct tag_set *tags)
{
    *s = (struct served){.ctx = ctx, .tags = tags};
}

void served_kept(struct served *s, const struct message_kept *m)
{
    struct served_kept *k;
    uint32_t replaced = 0;
    char *text;

    if (m->handler >= tags_table(s->tags)->handlers->count)
        return;
    for (; s->kept_count <= m->handler;
         s->kept[s->kept_count++] = (struct served_kept){.text = NULL})
        MEM_ROOM(s->kept, s->kept_count, s->kept_cap);
    k = &s->kept[m->handler];
    for (int why = 0; why < MESSAGE_KEPT_WHYS; why++)
        replaced += m->replaced[why];
    text = mem_printf(HANDLER_KEPT_TEXT ", %" PRIu64 " MB, %u replaced%s%s", m->busy, m->idle,
                      m->memory >> 20, replaced, m->last ? ", last for: " : "",
                      m->last ? m->last : "");
    s->tags->rests_changed |= !k->text || strcmp(k->text, text) != 0;
    free(k->text);
    *k = (struct served_kept){*m, text};
    k->told.last = NULL;
}

static void forget_kept(struct served *s)
{
    while (s->kept_count)
        free(s->kept[--s->kept_count].text);
}

void served_handlers_changed(struct served *s)
{
    forget_kept(s);
    s->look_us = 0;
}

int64_t served_next(const struct served *s)
{
    int64_t next_us = s->tags->rests_changed ? MIN(s->look_us, s->rests_us) : s->look_us;

    return s->ctx->ending ? NEVER_US : MAX(next_us, s->retry_us);
}

static char *retry_text(const struct retry_policy *p)
{
    struct buf b = BUF_INIT;

    buf_str(&b, "");
    for (size_t i = 0; i < p->steps; i++)
        buf_printf(&b, "%s%" PRId64, i ? "," : "", p->step_ms[i]);
    return buf_take(&b);
}

/* known: the rows are there. */
static int put_handlers(const struct served *s, const struct handlers_table *table, bool known,
                        struct err *err)
{
    const struct handlers *all = table->handlers;
    MEM_LOCAL struct handler_row *rows = mem_zero(all->count, sizeof *rows);

    for (size_t i = 0; i < all->count; i++) {
        const struct handler *h = &all->items[i];

        rows[i] = (struct handler_row){.pattern = h->name,
                                       .is_glob = h->is_glob,
                                       .line = h->line,
                                       .digest = handlers_item_digest(h),
                                       .batch = (uint32_t)h->batch,
                                       .max_running = (uint32_t)h->max_running,
                                       .global_max_running = (uint32_t)h->global_max_running,
                                       .max_attempts = retry_max_attempts(&h->retry),
                                       .timeout_ms = h->timeout_ms,
                                       .retry = retry_text(&h->retry),
                                       .limit = h->limit};
    }
    int rc = handler_store_put(s->ctx->db, &s->ctx->owner, table->number, rows,
                               known ? 0 : all->count, err);
    for (size_t i = 0; i < all->count; i++)
        free(rows[i].retry);
    return rc;
}

/* A pass nearly always finds the handlers that the last one had. */
static int look(struct served *s, struct err *err)
{
    const struct handlers_table *table = tags_table(s->tags);
    struct handler_seen seen = {false, false};
    int rc = handler_store_look(s->ctx->db, table->number, &seen, err);

    seen.known |= !table->number; /* of no handlers, there is nothing to record */
    s->clean = s->clean || seen.rests;
    s->tags->rests_changed |= seen.rests; /* some may be over */
    if (rc == 0 && (!seen.known || s->tags->recorded != table->number)) {
        s->clean = true;
        rc = put_handlers(s, table, seen.known, err);
        if (rc == 0 && s->tags->recorded != table->number) {
            s->tags->recorded = table->number;
            rc = handler_store_clean(s->ctx->db, err); /* those of before */
        }
    }
    if (rc == 0)
        s->look_us = when_steady_us() + LOOK_EVERY_US;
    return rc;
}

/* What others are to know of a tag; false: nothing. The error is heap memory. */
static bool rest_of(struct tag_state *t, int64_t now_us, struct handler_rest *ret)
{
    const struct rows_fault *last = &t->aside.last;
    char took[WHEN_TEXT_SIZE];
    uint64_t *ids;

    *ret = (struct handler_rest){.tag = t->name, .for_ms = LASTING_MS};
    aside_ids(&t->aside, now_us, &ids); /* forgets what nobody tries any more */
    free(ids);
    if (t->look.rest_until_us > now_us && t->rest_error) {
        ret->for_ms = (t->look.rest_until_us - now_us) / 1000;
        ret->error = mem_printf("%.*s", REST_ERROR_MOST, t->rest_error);
    } else if (t->refused_us && now_us - t->refused_us < LOOK_EVERY_US) {
        ret->reason = HANDLER_REFUSED;
        ret->error = mem_strdup(t->refusal.text);
    } else if (t->aside.said_us && t->aside.count && last->err.code != ERR_LOCKED) {
        ret->reason = HANDLER_REFUSED;
        ret->error = mem_printf("task %" PRIu64 ": %s", last->id, last->err.text);
    } else if (t->slow_said) {
        ret->reason = HANDLER_SLOW;
        ret->error = mem_printf("changing a task takes %s, so that is done one by one",
                                when_format_rough(took, look_tag_row_us(&t->look) / 1000));
    }
    return ret->error;
}

/* The same of all tags of a handler. */
static bool rest_of_handler(const struct served *s, size_t index, int64_t now_us,
                            struct handler_rest *ret)
{
    const bool refused = s->tags->refused_us && now_us - s->tags->refused_us < LOOK_EVERY_US;
    const char *text = refused                 ? s->tags->refusal.text
                       : index < s->kept_count ? s->kept[index].text
                                               : NULL;

    *ret = (struct handler_rest){.tag = tags_table(s->tags)->handlers->items[index].name,
                                 .reason = refused ? HANDLER_REFUSED : HANDLER_KEPT,
                                 .for_ms = LASTING_MS,
                                 .error = text ? mem_strdup(text) : NULL};
    return text;
}

/* Of a tag that rests, dq_rest has a row already. */
static bool rests_already(const struct handler_rest *rests, size_t count, const char *tag)
{
    while (count && strcmp(rests[count - 1].tag, tag) != 0)
        count--;
    return count;
}

static int put_rests(struct served *s, struct err *err)
{
    const struct handlers *all = tags_table(s->tags)->handlers;
    struct handler_rest rests[RESTS_MOST];
    struct tag_state *t;
    size_t count = 0;
    int64_t now_us = when_steady_us();

    for (size_t at = 0; count < RESTS_MOST && (t = tags_each(s->tags, &at));)
        count += rest_of(t, now_us, &rests[count]);
    for (size_t i = 0; i < all->count && count < RESTS_MOST; i++)
        if (!rests_already(rests, count, all->items[i].name))
            count += rest_of_handler(s, i, now_us, &rests[count]);
    int rc = handler_store_put_rests(s->ctx->db, &s->ctx->owner, rests, count, err);
    for (size_t i = 0; i < count; i++)
        free(rests[i].error);
    s->clean = true;
    s->rests_us = when_steady_us() + RESTS_EVERY_US;
    if (rc == 0)
        s->tags->rests_changed = false;
    return rc;
}

/* With the next heartbeat it is tried again. A lock of another session is not worth a word, but a
 * pause: a locked table costs a second. */
static void put_off(struct served *s, int rc, const struct err *err)
{
    bool news = rc != ERR_LOCKED && rc != ERR_TRANSIENT && !s->refused;

    s->retry_us = when_steady_us() + MAX(s->ctx->conf->dqd.heartbeat_ms * 1000,
                                         rc == ERR_LOCKED ? LOCKED_AGAIN_US : 0);
    if (news)
        log_event(
            LOG_WARN,
            "cannot record which handlers this dqd has; only dq tags, dq show and dq why are affected",
            "error=%s", log_quote(err->text));
    s->refused = s->refused || news;
}

static void works(struct served *s)
{
    if (s->refused)
        log_event(LOG_INFO, "the handlers of this dqd can be recorded again", "%s", "");
    s->refused = false;
    s->retry_us = 0;
}

int served_run(struct served *s, struct err *err)
{
    int rc = when_steady_us() >= s->look_us ? look(s, err) : 0;

    if (rc == 0 && s->tags->rests_changed && when_steady_us() >= s->rests_us)
        rc = put_rests(s, err);
    if (rc < 0 && !db_connected(s->ctx->db))
        return rc;
    if (rc < 0)
        put_off(s, rc, err);
    else
        works(s);
    return 0;
}

void served_leave(struct served *s, bool stays)
{
    struct err err = {0};

    forget_kept(s);
    free(s->kept);
    if (db_connected(s->ctx->db) && (s->clean || stays) &&
        handler_store_clean(s->ctx->db, &err) < 0)
        log_event(LOG_DEBUG, "cannot delete old records of handlers", "error=%s",
                  log_quote(err.text));
}
