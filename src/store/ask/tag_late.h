/*
 * tag_late.h - since when the due tasks of each tag are late.
 *
 * A task is late from its expected time, or from when it was given that time, if that came later
 * (task_late_from).
 */
#ifndef DQ_STORE_ASK_TAG_LATE_H
#define DQ_STORE_ASK_TAG_LATE_H

#include "store/db/db.h"
#include "store/row/tag_info.h"

/* Sets late_from_at and late_sampled of the tags that have due tasks. infos[] is sorted by tag;
 * before, its late_from_at is the earliest expected time of the due tasks, or TASK_TIME_NONE, and
 * `due` is set. whole: these are all tags. Reads a bounded number of rows, for about most_ms;
 * late_sampled if some of the tag remain unread. Blocks on the database. */
int tag_late_read(struct db *db, struct tag_info *infos, size_t count, bool whole, int64_t most_ms,
                  struct err *err) __attribute__((warn_unused_result));

#endif
