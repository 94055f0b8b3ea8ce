/*
 * log_fold.c - see log_fold.h. Invariant: an event is written, or counted in a kind whose line is
 * still to come.
 */
#include "base/log_fold.h"

#include "base/buf.h"
#include "base/log.h"
#include "base/pattern.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/param.h>

/* More than there are messages in the program. */
#define MESSAGES_MOST 64

struct kind {
    uint64_t hash;    /* 0: free */
    int64_t said_us;  /* when its last line was written */
    uint64_t waiting; /* events since then; the last of them is the one below */
    int level;
    const char *msg; /* a literal of the caller */
    struct buf fields;
};

/* Those behind LOG_FOLD_KINDS are for events that find no other free: one for each message. */
#define KINDS (LOG_FOLD_KINDS + MESSAGES_MOST)
static struct kind kinds[KINDS];
static size_t waiting_kinds; /* those with waiting events */

static uint64_t hash_of(const char *msg, const char *tag, const char *error)
{
    static struct buf pattern = BUF_INIT;
    uint64_t h = text_hash(TEXT_HASH_INIT, msg, strlen(msg) + 1);
    if (tag)
        h = text_hash(h, tag, strlen(tag) + 1);
    if (error) {
        buf_reset(&pattern);
        pattern_put(&pattern, error);
        h = text_hash(h, pattern.data ? pattern.data : "", pattern.len);
    }
    return h ? h : 1;
}

static void say(struct kind *k, int64_t now_us)
{
    const char *fields = k->fields.data ? k->fields.data : "";
    if (k->waiting > 1)
        log_event(k->level, k->msg, "repeated=%" PRIu64 " %s", k->waiting - 1, fields);
    else
        log_event(k->level, k->msg, "%s", fields);
    k->waiting = 0;
    k->said_us = now_us;
    waiting_kinds--;
}

/* Among kinds[from .. to-1]: the one with that hash; else a free one, or one that has been silent
 * for a second. NULL: all are in use. */
static struct kind *find(size_t from, size_t to, uint64_t hash, int64_t now_us)
{
    struct kind *unused = NULL;
    for (size_t i = from; i < to; i++) {
        struct kind *k = &kinds[i];
        if (k->hash == hash)
            return k;
        if (!unused && (!k->hash || (!k->waiting && now_us - k->said_us >= LOG_FOLD_EVERY_US)))
            unused = k;
    }
    if (unused) {
        unused->hash = hash;
        unused->said_us = now_us - LOG_FOLD_EVERY_US;
    }
    return unused;
}

static struct kind *kind_of(const char *msg, const char *tag, const char *error, int64_t now_us)
{
    struct kind *k = find(0, LOG_FOLD_KINDS, hash_of(msg, tag, error), now_us);
    if (!k)
        k = find(LOG_FOLD_KINDS, KINDS, hash_of(msg, NULL, NULL), now_us);
    return k ? k : &kinds[KINDS - 1];
}

void log_fold(int64_t now_us, int level, const char *msg, const char *tag, const char *error,
              const char *fields, ...)
{
    va_list ap;
    if (level > log_level())
        return;
    struct kind *k = kind_of(msg, tag, error, now_us);
    k->level = level;
    k->msg = msg;
    waiting_kinds += k->waiting++ == 0;
    buf_reset(&k->fields);
    va_start(ap, fields);
    buf_vprintf(&k->fields, fields, ap);
    va_end(ap);
    if (now_us - k->said_us >= LOG_FOLD_EVERY_US)
        say(k, now_us);
}

void log_fold_flush(int64_t now_us)
{
    for (size_t i = 0; waiting_kinds && i < KINDS; i++)
        if (kinds[i].waiting && now_us - kinds[i].said_us >= LOG_FOLD_EVERY_US)
            say(&kinds[i], now_us);
}

int64_t log_fold_next(void)
{
    int64_t next = INT64_MAX;
    for (size_t i = 0; waiting_kinds && i < KINDS; i++)
        if (kinds[i].waiting)
            next = MIN(next, kinds[i].said_us + LOG_FOLD_EVERY_US);
    return next;
}
