/*
 * notify.h - reports the state of the service to systemd, by the protocol of sd_notify(3).
 */
#ifndef DQ_POLLER_NOTIFY_H
#define DQ_POLLER_NOTIFY_H

#include "base/buf.h"
#include "poller/tags.h"

#include <stdint.h>

/* Sends a state like "READY=1" or "STATUS=..." to $NOTIFY_SOCKET; does nothing without it. Never
 * blocks. */
void notify_send(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* How often to send "WATCHDOG=1", in microseconds: half of $WATCHDOG_USEC; 0: not at all. */
int64_t notify_watchdog_us(void);

/* Appends what dqd is doing, for `systemctl status`: "4 of 32 busy, 3 tags late (slow.export 29m),
 * 2 tags rest": running of `slots` handlers; the tags whose earliest task had been due for a second
 * or more when all tags were looked at last, and the latest of them; those whose handler could not
 * be started. Tags without a handler here are left out. One line, whatever the names of the tags.
 * now_us: steady clock. */
void notify_put_status(struct buf *b, const struct tag_set *tags, uint32_t running, uint32_t slots,
                       int64_t now_us);

#endif
