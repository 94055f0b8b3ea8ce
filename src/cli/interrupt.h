/*
 * interrupt.h - an interrupt that ends work between two steps, never within one.
 */
#ifndef DQ_CLI_INTERRUPT_H
#define DQ_CLI_INTERRUPT_H

#include <stdbool.h>

/* From now on the first SIGINT or SIGTERM is noted, and a second one ends the program. */
void interrupt_catch(void);
bool interrupt_asked(void);

#endif
