/*
 * targets.c - the tasks to be changed or deleted. Invariant: each is listed once, at one version.
 */
#include "store/ask/targets.h"
#include "base/mem.h"
#include "store/row/rows.h"

#include <stdlib.h>

struct listing {
    struct targets *x;
    bool (*wanted)(const struct task *t, void *arg);
    void *arg;
};

static int add_target(const struct task *t, void *arg)
{
    const struct listing *l = arg;
    struct targets *x = l->x;
    size_t cap = x->cap, cap_too = x->cap;

    if (l->wanted && !l->wanted(t, l->arg))
        return 0;
    MEM_ROOM(x->refs, x->count, cap);
    MEM_ROOM(x->running, x->count, cap_too);
    MEM_ROOM(x->sizes, x->count, x->cap);
    x->refs[x->count] = (struct claim_ref){t->id, t->version};
    x->sizes[x->count] = rows_size(t->body_size, t->again_at != TASK_TIME_NONE);
    x->running[x->count++] = t->status == TASK_RUNNING;
    return 0;
}

void targets_done(struct targets *x)
{
    free(x->refs);
    free(x->running);
    free(x->sizes);
}

int targets_list(struct db *db, const struct task_filter *f, unsigned allowed,
                 bool (*wanted)(const struct task *t, void *arg), void *arg, struct targets *x,
                 struct err *err)
{
    struct task_filter allowing = *f;
    struct listing l = {x, wanted, arg};

    allowing.whole = true;
    allowing.statuses = (f->statuses ? f->statuses : TASK_ANY) & allowed;
    return allowing.statuses ? task_list(db, &allowing, false, add_target, &l, err) : 0;
}

size_t targets_step(const struct targets *x, size_t from)
{
    size_t n = 0, bytes = 0;

    while (from + n < x->count && n < ROWS_STEP && rows_take(&bytes, x->sizes[from + n]))
        n++;
    return n;
}

int targets_unsure(size_t n, struct err *err)
{
    return err_set(
        err, ERR_LOST,
        "%s; it is not known whether these %zu tasks were changed: running it again is safe",
        err->text, n);
}
