/*
 * handlers_load.h - reads the handlers file.
 *
 * Format: dq-handlers(5). Every message is "FILE:LINE:COLUMN: ..." (1-based). Unknown keys are
 * errors, reported with the nearest name; duplicates, aliases, anchors, merge keys and tags (!x)
 * are refused; size (1 MiB) and depth (8) are bounded.
 */
#ifndef DQ_CONF_HANDLERS_LOAD_H
#define DQ_CONF_HANDLERS_LOAD_H

#include "base/buf.h"
#include "base/err.h"
#include "conf/handlers.h"

#include <stddef.h>

#define HANDLERS_LOAD_TEXT_MAX ((size_t)1024 * 1024)

/* Reads and checks the whole file, including its owner and mode (conf_file_open). Accounts named by
 * `user` must exist. A relative `cwd`, and a relative program with a slash in a `run` list, begin
 * at the directory of the file. May wait for the file system and the account database; may run in a
 * thread. ERR_CONFIG. */
int handlers_load(const char *path, struct handlers **ret, struct err *err)
    __attribute__((warn_unused_result));
/* The same; ret_text gets the text of the file, also on failure. */
int handlers_load_text(const char *path, struct buf *ret_text, struct handlers **ret,
                       struct err *err) __attribute__((warn_unused_result));
/* Builds the same table again from that text, without asking the file system or looking up
 * accounts. */
int handlers_load_again(const char *path, const char *text, size_t len, struct handlers **ret,
                        struct err *err) __attribute__((warn_unused_result));

#endif
