/*
 * redraw.h - the terminal as a page that is drawn again and again. The page has a screen of its own
 * (the alternate screen), so what was on the terminal before is there again afterwards.
 */
#ifndef DQ_CLI_SHOW_REDRAW_H
#define DQ_CLI_SHOW_REDRAW_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

/* beside characters */
enum redraw_key {
    REDRAW_NONE = -1, /* none was typed */
    REDRAW_UP = -2,
    REDRAW_DOWN = -3,
    REDRAW_OTHER = -4,
    REDRAW_GONE = -5, /* the terminal is */
};

/* Takes over the terminal that stdout is; keys are read if stdin is a terminal, too. From now on,
 * an interrupt ends the program with exit status 0, at once, and SIGTERM and SIGHUP end it as
 * usual; the terminal is left as it was. ERR_USAGE: stdout is not a terminal, or one that cannot do
 * it. */
int redraw_begin(struct err *err) __attribute__((warn_unused_result));
void redraw_end(void);
void redraw_size(unsigned *ret_width, unsigned *ret_height);

/* Draws a page in place of the one before, unless it is the same: as many of its lines as fit, cut
 * at the width. Colours are kept; there must be no other escape sequence in it. */
void redraw_page(const char *text);
/* The next key, a character or one of enum redraw_key. Waits up to 100 ms for it. */
int redraw_key(void);
/* Waits this long; less if the window has another size. False: q was typed. */
bool redraw_wait(int64_t ms) __attribute__((warn_unused_result));

#endif
