/*
 * replace.h - files that are replaced as a whole.
 */
#ifndef DQ_BASE_REPLACE_H
#define DQ_BASE_REPLACE_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

/* Writes a file so that a reader sees the old text or the new one, never a part: a new file beside
 * it, PATH.PID.new, is renamed over it, and keeps its mode and owner. Links lead to the file and
 * stay. A crash leaves the new file; one that is ten minutes old is deleted by the next call for
 * the same path.
 *
 * What is no regular file (a device, a fifo, /dev/stdout), has several names, or can be written but
 * not replaced, is written into as `>` does: then a reader may see a part. may_wait: for the reader
 * of a fifo; otherwise it is an error if none takes all at once. What was printed on stdout must
 * have been flushed. On any failure before the first byte the old file stays. ERR_SYSTEM. */
int replace_file(const char *path, const void *text, size_t len, bool may_wait, struct err *err)
    __attribute__((warn_unused_result));

#endif
