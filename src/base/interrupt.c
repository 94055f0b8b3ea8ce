/*
 * interrupt.c - see interrupt.h.
 */
#include "base/interrupt.h"

#include <signal.h>
#include <stddef.h>

static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
#define COUNT (sizeof numbers / sizeof numbers[0])

static volatile sig_atomic_t asked;
static struct sigaction before[COUNT];

/* The next one does what it would have done before. */
static void ask(int number)
{
    asked = 1;
    for (size_t i = 0; i < COUNT; i++)
        if (numbers[i] == number)
            sigaction(number, &before[i], NULL);
}

void interrupt_catch(void)
{
    const struct sigaction action = {.sa_handler = ask, .sa_flags = SA_RESTART};
    static bool caught;

    for (size_t i = 0; i < COUNT; i++) {
        if (!caught)
            sigaction(numbers[i], NULL, &before[i]);
        if (numbers[i] != SIGHUP || before[i].sa_handler != SIG_IGN) /* nohup */
            sigaction(numbers[i], &action, NULL);
    }
    caught = true;
}

bool interrupt_asked(void)
{
    return asked != 0;
}
