/*
 * reload.h - reads the handlers file without waiting for it: a thread does, so that a file system
 * or an account database that does not answer holds up nothing but the new table.
 */
#ifndef DQ_RUNNER_RELOAD_H
#define DQ_RUNNER_RELOAD_H

#include "base/err.h"
#include "conf/handlers.h"

#include <stdbool.h>

struct reload;

/* path must outlive it. NULL: no descriptor was left (errno). Never freed: it ends with the
 * process. */
struct reload *reload_new(const char *path);
/* to poll(2): readable when reload_take may have something */
int reload_fd(const struct reload *l);
/* Begins to read, or to read once more when what is being read now has been: however often it is
 * asked for meanwhile. */
void reload_ask(struct reload *l);
/* Whether a read has ended: *ret is the table (the caller's) and *ret_text a sealed memfd with its
 * text (the caller's), or *ret is NULL and err says why. */
bool reload_take(struct reload *l, struct handlers **ret, int *ret_text, struct err *err);

#endif
