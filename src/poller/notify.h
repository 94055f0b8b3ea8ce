/*
 * notify.h - reports the state of the service to systemd, by the protocol of sd_notify(3).
 */
#ifndef DQ_POLLER_NOTIFY_H
#define DQ_POLLER_NOTIFY_H

#include <stdint.h>

/* Sends a state like "READY=1" or "STATUS=..." to $NOTIFY_SOCKET; does nothing without it. Never
 * blocks. */
void notify_send(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* How often to send "WATCHDOG=1", in microseconds: half of $WATCHDOG_USEC; 0: not at all. */
int64_t notify_watchdog_us(void);

#endif
