/*
 * conf_file.h - what the two configuration files have in common: being read whole, and naming other
 * files. Private to src/conf.
 */
#ifndef DQ_CONF_CONF_FILE_H
#define DQ_CONF_CONF_FILE_H

#include "base/buf.h"
#include "base/err.h"

#include <stddef.h>

/* Appends a whole file, opened by conf_open_trusted, to ret. More than max bytes: ERR_CONFIG. */
int conf_file_read(const char *path, const char *what, size_t max, struct buf *ret, struct err *err)
    __attribute__((warn_unused_result));

/* path made absolute by the current directory, and the directory part of an absolute path. The
 * caller frees both. */
char *conf_file_absolute(const char *path);
char *conf_file_directory(const char *absolute);

/* A path as written in a configuration file of directory dir: absolute ones as they are, others
 * below dir. The caller frees. */
char *conf_file_resolve(const char *dir, const char *path);

/* Which dq.ini to read, as conf.h says; the caller frees it. NULL when there is none:
 * ERR_CONFIG. */
char *conf_file_find(const char *explicit_path, struct err *err)
    __attribute__((warn_unused_result));

#endif
