/*
 * wake_listen.h - receives wake-ups: a file descriptor becomes readable when something has just
 * become due.
 *
 * The caller polls the descriptor and decides when to act on it. While wake-ups are not taken, any
 * number of them costs as much as one.
 */
#ifndef DQ_WAKE_WAKE_LISTEN_H
#define DQ_WAKE_WAKE_LISTEN_H

#include "base/err.h"

#include <stdbool.h>

struct wake_listener;

/* Creates the file of this process in dir, and dir if it is missing, and removes the files that
 * dead processes of the same account left. 0 or ERR_SYSTEM. */
int wake_listen_open(const char *dir, const char *database, struct wake_listener **ret_listener,
                     struct err *err) __attribute__((warn_unused_result));
/* Removes the file. NULL is fine. */
void wake_listen_close(struct wake_listener *l);

/* For poll(2): readable once a wake-up has come, until wake_listen_take. */
int wake_listen_fd(const struct wake_listener *l);
/* Takes all wake-ups that have come. Do so before you look at what is due: a wake-up that comes
 * from now on may be about a task that the look does not see. Does not block. True: schedules or
 * limits have changed. */
bool wake_listen_take(struct wake_listener *l);
/* False if senders can no longer find the file: it, or the directory, was removed or replaced.
 * Close the listener then, and open another. */
bool wake_listen_reachable(const struct wake_listener *l);

/* 0 if this account could listen in dir, which may be missing yet; else ERR_SYSTEM. Changes
 * nothing. */
int wake_listen_check(const char *dir, struct err *err);

#endif
