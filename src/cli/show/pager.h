/*
 * pager.h - long output on a terminal goes through a pager, as git does it.
 *
 * The pager is $DQ_PAGER, else $PAGER, else less; empty or "cat" means none. less gets LESS=FRX
 * unless that is set: it ends at once if the output fits on the screen.
 */
#ifndef DQ_CLI_SHOW_PAGER_H
#define DQ_CLI_SHOW_PAGER_H

#include <stdbool.h>

/* Whether pager_begin may start one. No, until this is called. */
void pager_allow(bool yes);
/* Before the first output: starts the pager if it is allowed and stdout is a terminal. From then on
 * stdout, and stderr if it is a terminal, go to it. If it cannot be started there is none. On
 * SIGINT, SIGTERM and SIGHUP the program ends after the pager has. */
void pager_begin(void);
/* Whether it runs: a reader that goes away is a user who has seen enough. */
bool pager_active(void);
/* After the last output: waits until the user leaves the pager, and gives stdout and stderr back.
 */
void pager_end(void);

#endif
