/*
 * wakeup.c - see wakeup.h. Invariant: between two looks nobody polls for wake-ups, let alone takes
 * them, and look.c decides how far apart those looks are: a flood of wake-ups costs its sender.
 */
#include "poller/wakeup.h"

#include "base/err.h"
#include "base/log.h"
#include "base/when.h"
#include "conf/conf.h"
#include "poller/dbclock.h"
#include "poller/look.h"
#include "wake/wake_listen.h"

#include <stddef.h>

void wakeup_listen(struct wakeup *w, const struct conf *conf)
{
    const char *dir = conf->dqd.wake_dir;
    bool again = w->tried, lost = w->listener && !wake_listen_reachable(w->listener);
    char text[WHEN_TEXT_SIZE];
    struct err err = {0};

    if (w->off || !dir[0] || (w->listener && !lost))
        return;
    w->tried = true;
    wake_listen_close(w->listener);
    w->listener = NULL;
    w->rung = false;
    if (wake_listen_open(dir, conf->mysql.database, &w->listener, &err) < 0) {
        log_event(lost || !again ? LOG_NOTE : LOG_DEBUG,
                  "dq cannot wake this dqd, which notices new tasks at its next poll",
                  "wake_dir=%s poll_interval=%s error=%s", log_quote(dir),
                  when_format_duration(text, conf->dqd.poll_interval_ms), log_quote(err.text));
    } else if (again) {
        log_event(LOG_NOTE, "dq can wake this dqd again: its wake-up file has been recreated",
                  "wake_dir=%s", log_quote(dir));
        w->rung = true; /* wake-ups sent meanwhile are lost */
    }
}

void wakeup_end(struct wakeup *w)
{
    wake_listen_close(w->listener);
    *w = (struct wakeup){.off = true};
}

int wakeup_fd(const struct wakeup *w)
{
    return w->rung || !w->listener ? -1 : wake_listen_fd(w->listener);
}

void wakeup_ring(struct wakeup *w)
{
    w->rung = !w->off;
}

int64_t wakeup_next(const struct wakeup *w)
{
    return w->rung ? w->next_us : NEVER_US;
}

bool wakeup_take(struct wakeup *w, struct look *look)
{
    int64_t now_us = when_steady_us();

    if (!w->rung || now_us < w->next_us)
        return false;
    const bool schedules = w->listener && wake_listen_take(w->listener);
    w->rung = false;
    w->next_us = look_woken(look, now_us);
    return schedules;
}
