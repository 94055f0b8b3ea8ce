/*
 * reload.h - reads the handlers file in a thread, so that a file system or an account database that
 * does not answer delays only the new table.
 */
#ifndef DQ_RUNNER_RELOAD_H
#define DQ_RUNNER_RELOAD_H

#include "base/err.h"
#include "conf/handlers.h"

#include <stdbool.h>

struct reload;

/* path must outlive it. NULL: no descriptor was left (errno). Never freed. */
struct reload *reload_new(const char *path);
/* to poll(2): readable when reload_take may have something */
int reload_fd(const struct reload *l);
/* Begins to read the file; if it is being read, reads it once more afterwards, however often this
 * is called meanwhile. Does not block. */
void reload_ask(struct reload *l);
/* True: the file was read. *ret is the table and *ret_text a sealed memfd with its text, both owned
 * by the caller; or *ret is NULL, *ret_text -1, and err says why. */
bool reload_take(struct reload *l, struct handlers **ret, int *ret_text, struct err *err);

#endif
