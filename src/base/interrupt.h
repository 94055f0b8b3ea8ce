/*
 * interrupt.h - an interrupt that ends work between two steps, never within one.
 */
#ifndef DQ_BASE_INTERRUPT_H
#define DQ_BASE_INTERRUPT_H

#include <stdbool.h>

/* From now on the first SIGINT, SIGTERM or SIGHUP is noted, and a second one does what it would
 * have done before: it ends the program. An ignored SIGHUP stays ignored. */
void interrupt_catch(void);
bool interrupt_asked(void);

#endif
