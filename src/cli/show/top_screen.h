/*
 * top_screen.h - a full screen of lines, and keys. The only user of ncurses.
 */
#ifndef DQ_CLI_SHOW_TOP_SCREEN_H
#define DQ_CLI_SHOW_TOP_SCREEN_H

#include "base/err.h"

enum top_look { TOP_PLAIN, TOP_BOLD, TOP_CHOSEN };
/* beside characters */
enum top_key { TOP_KEY_NONE = -1, TOP_KEY_UP = -2, TOP_KEY_DOWN = -3, TOP_KEY_OTHER = -4 };

/* Takes the terminal over. ERR_USAGE: standard input or output is none, or TERM is not known;
 * ERR_STATE: this dq was built without ncurses. */
int top_screen_begin(struct err *err) __attribute__((warn_unused_result));
void top_screen_end(void); /* leaves it as it was; does nothing if it was not taken */
void top_screen_size(unsigned *ret_width, unsigned *ret_height);

/* Sets line y, and blanks its rest. top_screen_show shows what was set, and clears the lines from
 * `lines` on. */
void top_screen_line(unsigned y, const char *text, enum top_look look);
void top_screen_show(unsigned lines);
/* The next key, a character or one of enum top_key. Waits up to wait_ms for it. */
int top_screen_key(int wait_ms);

#endif
