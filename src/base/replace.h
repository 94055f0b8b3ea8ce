/*
 * replace.h - files that are replaced as a whole.
 */
#ifndef DQ_BASE_REPLACE_H
#define DQ_BASE_REPLACE_H

#include "base/err.h"

#include <stddef.h>
#include <sys/types.h>

/* Writes a new file beside `path`, PATH.PID.new, and renames it to that: a reader sees the old text
 * or the new one, never a part. A crash leaves the new file; one that is ten minutes old is deleted
 * by the next call for the same path. mode: of the new file, as the umask allows. On failure the
 * old file stays. ERR_SYSTEM. */
int replace_file(const char *path, const void *text, size_t len, mode_t mode, struct err *err)
    __attribute__((warn_unused_result));

#endif
