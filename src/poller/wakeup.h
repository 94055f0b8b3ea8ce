/*
 * wakeup.h - when the poller takes the wake-ups that come, and what it does if none can come.
 */
#ifndef DQ_POLLER_WAKEUP_H
#define DQ_POLLER_WAKEUP_H

#include <stdbool.h>
#include <stdint.h>

struct conf;
struct look;
struct wake_listener;

struct wakeup {
    struct wake_listener *listener; /* NULL: none */
    bool off;                       /* do not listen, or no longer */
    bool tried;                     /* to listen */
    bool rung;                      /* a wake-up has come and was not taken yet */
    int64_t next_us;                /* the next one is taken then at the earliest */
};

/* Listens as [dqd] wake_dir says, unless that works already. A failure is logged, and work is then
 * found by polling. To be repeated now and then: the directory may have been removed. */
void wakeup_listen(struct wakeup *w, const struct conf *conf);
/* Stops listening for good. */
void wakeup_end(struct wakeup *w);

/* For poll(2): once it is readable, wakeup_ring is to be called. -1: not at the moment. */
int wakeup_fd(const struct wakeup *w);
/* A wake-up has come, or a task has become due here that no look is planned for. */
void wakeup_ring(struct wakeup *w);
/* When wakeup_take has something to do. */
int64_t wakeup_next(const struct wakeup *w);
/* Takes what has come, unless the last time was too short ago, and passes it on to look.
 * True: schedules have changed. */
bool wakeup_take(struct wakeup *w, struct look *look);

#endif
