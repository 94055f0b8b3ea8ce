/*
 * again.h - descriptors that do not block, though dq wants to wait: other programs leave pipes and
 * terminals so, for all who share them.
 */
#ifndef DQ_BASE_AGAIN_H
#define DQ_BASE_AGAIN_H

#include <stdbool.h>

/* After a read (POLLIN) or write (POLLOUT) that failed: whether to repeat it, because a signal
 * came, or because it would have had to wait. Then waits until it need not, or for a signal. */
bool again_wait(int fd, short events);

#endif
