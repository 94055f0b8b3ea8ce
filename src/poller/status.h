/*
 * status.h - what dqd is doing, in a line for `systemctl status`.
 */
#ifndef DQ_POLLER_STATUS_H
#define DQ_POLLER_STATUS_H

#include "base/buf.h"
#include "poller/tags.h"

#include <stdint.h>

/* Appends "4 of 32 busy, 3 tags late (slow.export 29m), 2 tags rest": running of `slots` handlers;
 * the tags whose earliest task had been due for a second or more when all tags were looked at last,
 * and the latest of them; those whose handler could not be started. Tags without a handler here are
 * left out. One line, whatever the names of the tags. now_us: steady clock. */
void status_put(struct buf *b, const struct tag_set *tags, uint32_t running, uint32_t slots,
                int64_t now_us);

#endif
