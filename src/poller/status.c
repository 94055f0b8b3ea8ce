/*
 * status.c - see status.h.
 */
#include "poller/status.h"

#include "base/text.h"
#include "base/when.h"

#include <stddef.h>
#include <string.h>

#define LATE_MS 1000 /* less is no news */
#define TAG_SHOWN_COLUMNS 40

static void put_tags(struct buf *b, size_t count, const char *what)
{
    buf_printf(b, ", %zu tag%s %s%s", count, count == 1 ? "" : "s", what,
               count == 1 && strcmp(what, "rest") == 0 ? "s" : "");
}

void status_put(struct buf *b, const struct tag_set *tags, uint32_t running, uint32_t slots,
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
