/*
 * aside.h - rows that could not be changed, and when to try them again. Others go on meanwhile.
 */
#ifndef DQ_POLLER_ASIDE_H
#define DQ_POLLER_ASIDE_H

#include "store/rows.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* from here on it is better to ask for what is not locked, if the server can */
#define ASIDE_MANY 500
#define ASIDE_MOST 5000

/* Times are microseconds on the steady clock. {0} is empty. */
struct aside_row {
    uint64_t id;
    int64_t until_us, hold_us; /* it is not tried before; how long it was put aside last */
};
struct aside {
    struct aside_row *rows;
    size_t count, cap;
    int64_t since_us; /* the first of them was put aside then; meaningful while there are some */
    int64_t said_us;  /* when aside_news was last true; 0: not since it was empty */
    struct rows_fault last;
};
void aside_done(struct aside *a);

/* Puts a row aside for longer than the last time: 0.1 s and twice as long each time, at most 5
 * s for a lock, a minute for what the server refuses. Of more than ASIDE_MOST the rest is not
 * noted. */
void aside_put(struct aside *a, const struct rows_fault *f, int64_t now_us);
void aside_put_all(struct aside *a, const struct rows_faults *f, int64_t now_us);
void aside_forget(struct aside *a, uint64_t id); /* it was changed */
/* Those that are not to be tried yet; *ret_ids is heap memory (NULL: none). Rows of which nothing
 * was heard since their time came are forgotten: they were changed by now, or are gone. */
size_t aside_ids(struct aside *a, int64_t now_us, uint64_t **ret_ids);
/* Whether it is time to log them: a refusal at once, a lock once it has lasted a second, both every
 * ten minutes. */
bool aside_news(struct aside *a, int64_t now_us);
/* Whether there are none any more after some were logged; true once. */
bool aside_over(struct aside *a);

#endif
