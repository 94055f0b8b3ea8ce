/*
 * care.h - tags some of whose tasks cannot be claimed.
 */
#ifndef DQ_POLLER_CARE_H
#define DQ_POLLER_CARE_H

#include "base/err.h"
#include "poller/tags.h"
#include "store/row/rows.h"

#include <stdint.h>

/* A claim could not change these rows (there may be none): they are put aside, and logged if they
 * stay so. */
void care_put_aside(struct db *db, struct tag_state *t, const struct rows_faults *f,
                    int64_t now_us);
/* The server has refused a whole claim; err NULL: it has not. */
void care_refused(struct tag_state *t, const struct err *err);
/* The same of a look for tasks of any tag: none can be claimed. */
void care_look_refused(struct tag_set *tags, const struct err *err);
/* Another session has locked the tag's row of dq_limit: a dqd that is claiming, or an open
 * transaction. Only this tag waits. */
void care_limit_locked(struct tag_state *t, const struct err *err);
/* A claim was not hindered by that. */
void care_limit_free(struct tag_state *t);
/* After a change: logs that changing rows of the tag takes long, or does not any more. */
void care_slow(struct tag_state *t);
/* Some body_size was wrong: claims of the tag bring no bodies for a while. */
void care_long_bodies(struct tag_state *t, int64_t now_us);
/* At the end: logs the tags with tasks that could not be claimed, unless that was done. */
void care_say_left(const struct tag_set *tags);

#endif
