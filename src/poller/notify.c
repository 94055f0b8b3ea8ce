/*
 * notify.c - see notify.h.
 */
#include "poller/notify.h"

#include "base/text.h"
#include "base/when.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void notify_send(const char *fmt, ...)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    size_t len = path ? strlen(path) : 0;
    char text[512];
    va_list ap;
    int fd, n;

    if (len < 2 || len >= sizeof to.sun_path || (path[0] != '/' && path[0] != '@'))
        return;
    memcpy(to.sun_path, path, len);
    if (path[0] == '@')
        to.sun_path[0] = '\0';
    va_start(ap, fmt);
    n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (n <= 0)
        return;
    if ((size_t)n >= sizeof text)
        n = (int)sizeof text - 1;
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return;
    (void)sendto(fd, text, (size_t)n, MSG_NOSIGNAL, (struct sockaddr *)&to,
                 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
    close(fd);
}

int64_t notify_watchdog_us(void)
{
    const char *text = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");

    if (!text || (pid && strtol(pid, NULL, 10) != (long)getpid()))
        return 0;
    return strtoll(text, NULL, 10) / 2;
}

/* ---- the line of its status */

#define LATE_MS 1000 /* less is no news */
#define TAG_SHOWN_COLUMNS 40

static void put_tags(struct buf *b, size_t count, const char *what)
{
    buf_printf(b, ", %zu tag%s %s%s", count, count == 1 ? "" : "s", what,
               count == 1 && strcmp(what, "rest") == 0 ? "s" : "");
}

void notify_put_status(struct buf *b, const struct tag_set *tags, uint32_t running, uint32_t slots,
                       int64_t now_us)
{
    const struct tag_state *t, *latest = NULL;
    size_t late = 0, resting = 0;
    char text[WHEN_TEXT_SIZE];

    for (size_t at = 0; (t = tags_each(tags, &at));) {
        if (t->handler < 0)
            continue;
        resting += t->look.rest_until_us > now_us;
        if (t->late_ms < LATE_MS)
            continue;
        late++;
        if (!latest || t->late_ms > latest->late_ms)
            latest = t;
    }
    buf_printf(b, "%u of %u busy", running, slots);
    if (latest) {
        put_tags(b, late, "late");
        buf_str(b, " (");
        text_escape(b, latest->name, strlen(latest->name), TAG_SHOWN_COLUMNS);
        buf_printf(b, " %s)", when_format_rough(text, latest->late_ms));
    }
    if (resting)
        put_tags(b, resting, "rest");
}
