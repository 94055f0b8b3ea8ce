/*
 * notify.h - telling systemd how the service is: sd_notify(3)'s protocol, one datagram.
 */
#ifndef DQ_POLLER_NOTIFY_H
#define DQ_POLLER_NOTIFY_H

#include <stdint.h>

/* Sends a state like "READY=1" or "STATUS=..." to $NOTIFY_SOCKET; does nothing without it. Never
 * blocks. */
void notify_send(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* How often "WATCHDOG=1" is to be sent, in microseconds: half of $WATCHDOG_USEC; 0: not at all. */
int64_t notify_watchdog_us(void);

#endif
