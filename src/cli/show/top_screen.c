/*
 * top_screen.c - see top_screen.h.
 */
#include "cli/show/top_screen.h"

#define INSTEAD "; dq tags and dq stats show the same numbers"

#ifdef HAVE_NCURSES

#include <locale.h>
#include <ncurses.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static SCREEN *screen;
static bool taken;

/* ncurses leaves the terminal clean when SIGTERM ends the program, but not when SIGHUP does. */
static struct sigaction on_term;

static void hang_up(int number __attribute__((unused)))
{
    on_term.sa_handler(SIGTERM);
}

static void hang_up_cleanly(void)
{
    const struct sigaction action = {.sa_handler = hang_up};
    struct sigaction hup;

    sigaction(SIGTERM, NULL, &on_term);
    sigaction(SIGHUP, NULL, &hup);
    if (hup.sa_handler == SIG_DFL && on_term.sa_handler != SIG_DFL && on_term.sa_handler != SIG_IGN)
        sigaction(SIGHUP, &action, NULL);
}

/* NULL: the terminal is not known, or cannot move its cursor. */
static SCREEN *new_screen(void)
{
    SCREEN *s = newterm(NULL, stdout, stdin);

    if (s && tigetstr("cup")) {
        hang_up_cleanly();
        return s;
    }
    if (s) {
        endwin();
        delscreen(s);
    }
    return NULL;
}

int top_screen_begin(struct err *err)
{
    const char *term = getenv("TERM");

    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return err_set(err, ERR_USAGE, "standard input and output must be a terminal" INSTEAD);
    setlocale(LC_CTYPE, "");
    if (!screen && !(screen = new_screen()))
        return err_set(err, ERR_USAGE, "TERM = %s has no full screen that is known here" INSTEAD,
                       term && *term ? term : "(not set)");
    taken = true;
    cbreak();
    noecho();
    keypad(stdscr, TRUE);
    set_escdelay(50);
    curs_set(0);
    clear();
    return 0;
}

void top_screen_end(void)
{
    if (taken)
        endwin();
    taken = false;
}

void top_screen_size(unsigned *ret_width, unsigned *ret_height)
{
    *ret_width = (unsigned)getmaxx(stdscr);
    *ret_height = (unsigned)getmaxy(stdscr);
}

void top_screen_line(unsigned y, const char *text, enum top_look look)
{
    static const attr_t looks[] = {
        [TOP_PLAIN] = A_NORMAL, [TOP_BOLD] = A_BOLD, [TOP_CHOSEN] = A_REVERSE};

    move((int)y, 0);
    clrtoeol();
    attrset((int)looks[look]);
    addstr(text);
    attrset(A_NORMAL);
}

void top_screen_show(unsigned lines)
{
    if (lines < (unsigned)getmaxy(stdscr)) {
        move((int)lines, 0);
        clrtobot();
    }
    refresh();
}

int top_screen_key(int wait_ms)
{
    timeout(wait_ms);
    int key = getch();

    switch (key) {
    case ERR:
        return TOP_KEY_NONE;
    case KEY_UP:
        return TOP_KEY_UP;
    case KEY_DOWN:
        return TOP_KEY_DOWN;
    case KEY_ENTER:
        return '\n';
    case KEY_BACKSPACE:
        return '\b';
    default:
        return key < 256 ? key : TOP_KEY_OTHER;
    }
}

#else

int top_screen_begin(struct err *err)
{
    return err_set(err, ERR_STATE, "this dq was built without ncurses" INSTEAD);
}

void top_screen_end(void)
{
}

void top_screen_size(unsigned *ret_width, unsigned *ret_height)
{
    *ret_width = *ret_height = 0;
}

void top_screen_line(unsigned y __attribute__((unused)), const char *text __attribute__((unused)),
                     enum top_look look __attribute__((unused)))
{
}

void top_screen_show(unsigned lines __attribute__((unused)))
{
}

int top_screen_key(int wait_ms __attribute__((unused)))
{
    return TOP_KEY_NONE;
}

#endif
