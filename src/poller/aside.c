/*
 * aside.c - see aside.h.
 */
#include "poller/aside.h"

#include "base/mem.h"
#include "base/retry.h"
#include "poller/trouble.h"
#include "store/row/rows.h"

#include <stdlib.h>

/* How long a row is put aside: most locks are gone after the first pause, an operator who ends a
 * transaction should not wait longer than a few seconds, and a refusal lasts until an operator
 * fixes the server. */
#define HOLD_MIN_US INT64_C(100000)
#define HOLD_LOCKED_US INT64_C(5000000)
#define HOLD_REFUSED_US INT64_C(60000000)
/* A row whose time has come is tried far sooner than this. */
#define FORGET_US INT64_C(10000000)

void aside_done(struct aside *a)
{
    free(a->rows);
    *a = (struct aside){.rows = NULL};
}

static struct aside_row *find(struct aside *a, uint64_t id)
{
    for (size_t i = 0; i < a->count; i++)
        if (a->rows[i].id == id)
            return &a->rows[i];
    if (a->count == ASIDE_MOST)
        return NULL;
    MEM_ROOM(a->rows, a->count, a->cap);
    a->rows[a->count] = (struct aside_row){.id = id};
    return &a->rows[a->count++];
}

static void put(struct aside *a, const struct rows_fault *f, int64_t now_us)
{
    int64_t most_us = f->err.code == ERR_LOCKED ? HOLD_LOCKED_US : HOLD_REFUSED_US;

    struct aside_row *r = find(a, f->id);
    int64_t since_us = r && r->hold_us ? r->since_us : now_us;
    if (since_us <= a->since_us) {
        a->last = *f;
        a->since_us = since_us;
    }
    if (!r)
        return;
    r->since_us = since_us;
    r->hold_us = retry_pause(r->hold_us, HOLD_MIN_US, most_us);
    r->until_us = now_us + r->hold_us;
}

void aside_forget(struct aside *a, uint64_t id)
{
    for (size_t i = 0; i < a->count; i++) {
        if (a->rows[i].id == id) {
            a->rows[i] = a->rows[--a->count];
            return;
        }
    }
}

void aside_put(struct aside *a, const struct rows_faults *f, int64_t now_us)
{
    if (f->count)
        a->since_us = INT64_MAX;
    for (size_t i = 0; i < f->count; i++)
        put(a, &f->items[i], now_us);
}

size_t aside_ids(struct aside *a, int64_t now_us, uint64_t **ret_ids)
{
    uint64_t *ids = a->count ? mem_alloc(a->count * sizeof *ids) : NULL;
    size_t kept = 0, n = 0;

    for (size_t i = 0; i < a->count; i++) {
        struct aside_row *r = &a->rows[i];

        if (now_us - r->until_us > FORGET_US)
            continue;
        if (now_us < r->until_us)
            ids[n++] = r->id;
        a->rows[kept++] = *r;
    }
    a->count = kept;
    *ret_ids = ids;
    return n;
}

bool aside_news(struct aside *a, int64_t now_us)
{
    if (a->count == 0 || (a->said_us && now_us - a->said_us < TROUBLE_AGAIN_US))
        return false;
    if (a->last.err.code == ERR_LOCKED && now_us - a->since_us < TROUBLE_LOCK_US)
        return false;
    a->said_us = now_us;
    return true;
}

bool aside_over(struct aside *a)
{
    if (a->count || !a->said_us)
        return false;
    a->said_us = 0;
    return true;
}
