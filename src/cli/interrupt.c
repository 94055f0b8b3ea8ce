/*
 * interrupt.c - see interrupt.h.
 */
#include "cli/interrupt.h"

#include <signal.h>

static volatile sig_atomic_t asked;

static void ask(int signal_number __attribute__((unused)))
{
    asked = 1;
}

void interrupt_catch(void)
{
    struct sigaction action = {.sa_handler = ask, .sa_flags = SA_RESTART | (int)SA_RESETHAND};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

bool interrupt_asked(void)
{
    return asked != 0;
}
