/*
 * check.h - whether the handlers of a file could be started, found out without starting any.
 */
#ifndef DQ_RUNNER_CHECK_H
#define DQ_RUNNER_CHECK_H

#include "conf/handlers.h"

#include <stddef.h>

/* Calls warn for each handler that could not be started as things are now: its program or its
 * directory is not there. What a shell's line calls is not looked at. Returns how many. Needs no
 * runner; asks the account database and the file system. */
size_t check_handlers(const struct handlers *handlers, const char *default_user,
                      void (*warn)(const struct handlers *handlers, const struct handler *h,
                                   const char *why));

#endif
