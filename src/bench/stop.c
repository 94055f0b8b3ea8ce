/*
 * stop.c - the end of a measure.
 */
#include "bench/stop.h"

#include "base/when.h"

#include <signal.h>

#define LEAST 3

static volatile sig_atomic_t asked;

static void ask(int signal_number __attribute__((unused)))
{
    asked = 1;
}

void stop_catch_signals(void)
{
    struct sigaction action = {.sa_handler = ask, .sa_flags = SA_RESTART | (int)SA_RESETHAND};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
}

bool stop_asked(void)
{
    return asked != 0;
}

bool stop_not_yet(size_t done, int64_t end_us)
{
    return !stop_asked() && (done < LEAST || when_steady_us() < end_us);
}
