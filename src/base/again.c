/*
 * again.c - see again.h.
 */
#include "base/again.h"

#include <errno.h>
#include <poll.h>

bool again_wait(int fd, short events)
{
    struct pollfd p = {.fd = fd, .events = events};

    if (errno == EINTR)
        return true;
    return errno == EAGAIN && (poll(&p, 1, -1) >= 0 || errno == EINTR);
}
