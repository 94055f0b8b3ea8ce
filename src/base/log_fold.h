/*
 * log_fold.h - events that can come once for each task: of those that are alike, the log gets the
 * first at once, and then at most one a second, which counts the others as repeated=N.
 *
 * Nothing is lost: lines and their repeated= add up to the events.
 */
#ifndef DQ_BASE_LOG_FOLD_H
#define DQ_BASE_LOG_FOLD_H

#include <stdint.h>

#define LOG_FOLD_EVERY_US INT64_C(1000000)
/* Kinds of events that are kept apart at a time. Others are folded by their message alone. */
#define LOG_FOLD_KINDS 64

/* As log_event. Events are alike if msg, tag and the pattern of error (pattern.h) are; tag and
 * error may be NULL. now_us: steady clock. */
void log_fold(int64_t now_us, int level, const char *msg, const char *tag, const char *error,
              const char *fields, ...) __attribute__((format(printf, 6, 7)));
/* For loops, as it costs nothing if there is nothing to write. Writes the lines of kinds whose last
 * line is a second old: the last event of each, with repeated= for those before it. INT64_MAX
 * writes all of them: call it so at the end. */
void log_fold_flush(int64_t now_us);
/* When log_fold_flush has something to write; INT64_MAX: not before another event. */
int64_t log_fold_next(void);

#endif
