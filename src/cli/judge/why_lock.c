/*
 * why_lock.c - see why_lock.h.
 */
#include "cli/judge/why_lock.h"

#include "base/when.h"
#include "store/ask/lock_store.h"
#include "store/ask/why_store.h"

#include <stdlib.h>

#define LATE_MS (2 * WHEN_SECOND)

void why_lock_see(struct db *db, struct why_facts *f, struct why *w)
{
    struct lock_holder holder = {0};
    struct err err;
    if (!why_is_open(w) || f->late_ms < LATE_MS)
        return;
    if (!f->id && why_store_first(db, f->tag, &f->id, &err) != 1)
        return;
    f->locked = why_store_locked(db, f->id, &err) == 1;
    f->limit_locked = f->limit.running && why_store_limit_locked(db, f->tag, &err) == 1;
    if (!f->locked && !f->limit_locked)
        return;
    (void)!lock_store_holder(db, f->locked ? f->id : 0, &holder, &err);
    char *text = lock_store_describe(&holder), *end = lock_store_remedy(&holder);
    f->holder = text;
    f->holder_end = end;
    why_done(w);
    why_decide(f, w);
    f->holder = f->holder_end = NULL;
    free(text);
    free(end);
}
