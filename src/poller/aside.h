/*
 * aside.h - rows that could not be changed, and when to try them again. Meanwhile the others are
 * not held up.
 */
#ifndef DQ_POLLER_ASIDE_H
#define DQ_POLLER_ASIDE_H

#include "store/row/rows.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* With this many rows aside, a statement asks for rows that are not locked, if the server can,
 * rather than naming those that are. */
#define ASIDE_MANY 500
/* More are not noted: each costs a place in every claim's statement. */
#define ASIDE_MOST 5000

/* Times are microseconds on the steady clock. {0} is empty. */
struct aside_row {
    uint64_t id;
    int64_t until_us, hold_us; /* not to be tried before; how long it was put aside last */
    int64_t since_us;          /* when it was put aside first */
};
struct aside {
    struct aside_row *rows;
    size_t count, cap;
    int64_t said_us; /* when aside_news was last true; 0: not since it was empty */
    /* of those that were put aside last, the one that has been aside for the longest time, since */
    struct rows_fault last;
    int64_t since_us;
};
void aside_done(struct aside *a);

/* Puts rows aside, each for twice as long as the last time: 0.1 s at first, at most 5 s if it is
 * locked, a minute if the server refuses the change. Rows beyond ASIDE_MOST are not noted. */
void aside_put(struct aside *a, const struct rows_faults *f, int64_t now_us);
/* The row was changed. */
void aside_forget(struct aside *a, uint64_t id);
/* The rows that are not to be tried yet. Returns how many; *ret_ids is heap memory, the caller's
 * (NULL: none). Rows that were not put aside again for a while after their time came are forgotten:
 * they have been changed, or are gone. */
size_t aside_ids(struct aside *a, int64_t now_us, uint64_t **ret_ids);
/* Whether to log them now: a refusal at once, a lock once one row has had it for a second (the
 * claims of other dqds lock many rows, each for a moment), and both again every ten minutes. */
bool aside_news(struct aside *a, int64_t now_us);
/* Whether none are left after some were logged; true once. */
bool aside_over(struct aside *a);

#endif
