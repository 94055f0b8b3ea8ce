/*
 * check.h - checks whether handlers could be started, without starting any.
 */
#ifndef DQ_RUNNER_CHECK_H
#define DQ_RUNNER_CHECK_H

#include "conf/handlers.h"

#include <stddef.h>

/* Calls warn for each handler that cannot be started now, because its account, its program or its
 * directory does not exist, or that has a file in restart_on that does not. What a shell will call
 * is not checked. Returns how many there are. Asks the account database and the file system, which
 * may block. */
size_t check_handlers(const struct handlers *handlers, const char *default_user,
                      void (*warn)(const struct handlers *handlers, const struct handler *h,
                                   const char *why));

#endif
