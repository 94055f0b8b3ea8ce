/*
 * conf_file.h - finds, checks and reads configuration files and password files.
 */
#ifndef DQ_CONF_CONF_FILE_H
#define DQ_CONF_CONF_FILE_H

#include "base/buf.h"
#include "base/err.h"

#include <stddef.h>

/* Opens a configuration file for reading: a regular file, owned by root or the effective user, that
 * neither group nor others can write. Symbolic links are followed. Owner and mode are checked on
 * the descriptor, so the file cannot be replaced in between. Returns the descriptor or ERR_CONFIG.
 * `what` names the file's role in messages. */
int conf_file_open(const char *path, const char *what, struct err *err)
    __attribute__((warn_unused_result));

/* Appends a whole file, opened by conf_file_open, to ret. ERR_CONFIG if it has more than max
 * bytes. */
int conf_file_read(const char *path, const char *what, size_t max, struct buf *ret, struct err *err)
    __attribute__((warn_unused_result));

/* Reads a password: the first line of a regular file that is owned by root or the caller, and that
 * group and others cannot read; a group that the caller belongs to may read one that root owns.
 * Pass *ret_secret to conf_file_wipe_secret. */
int conf_file_read_secret(const char *path, char **ret_secret, struct err *err)
    __attribute__((warn_unused_result));
void conf_file_wipe_secret(char *secret); /* overwrites and frees; NULL is fine */

/* path made absolute by the current directory, and the directory part of an absolute path. The
 * caller frees both. */
char *conf_file_absolute(const char *path);
char *conf_file_directory(const char *absolute);

/* A path as written in a configuration file of directory dir: unchanged if it is absolute, else
 * below dir. The caller frees it. */
char *conf_file_resolve(const char *dir, const char *path);

/* Which dq.ini to read, as conf.h says; the caller frees it. NULL, with ERR_CONFIG, if there is
 * none. */
char *conf_file_find(const char *explicit_path, struct err *err)
    __attribute__((warn_unused_result));

#endif
