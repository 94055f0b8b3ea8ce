/*
 * care.h - tags of which something cannot be claimed.
 */
#ifndef DQ_POLLER_CARE_H
#define DQ_POLLER_CARE_H

#include "poller/tags.h"
#include "store/rows.h"

#include <stdint.h>

/* rows that a claim could not change */
void care_put_aside(struct tag_state *t, const struct rows_faults *f, int64_t now_us);
/* Somebody has locked the tag's row of dq_tag: another dqd that is claiming, or an open
 * transaction. Only this tag waits. */
void care_limit_locked(struct tag_state *t, const struct err *err);
void care_limit_free(struct tag_state *t);
/* at the end: the tags with tasks that could not be claimed, if that was not logged */
void care_say_left(const struct poller *p);
/* Some body_size was a lie: claims of the tag bring no bodies for a while. */
void care_long_bodies(struct tag_state *t, int64_t now_us);

#endif
