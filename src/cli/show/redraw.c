/*
 * redraw.c - see redraw.h. Invariant: whatever ends the program but SIGKILL, the terminal is left
 * as it was: signals restore it in their handler, because the program may wait for the database.
 */
#include "cli/show/redraw.h"

#include "base/again.h"
#include "base/buf.h"
#include "base/text.h"
#include "base/when.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/param.h>
#include <termios.h>
#include <unistd.h>

/* The alternate screen without a cursor, and back. */
#define ENTER "\033[?1049h\033[?25l"
#define LEAVE "\033[?25h\033[?1049l"
#define KEY_MS 100 /* that a key is waited for */

static struct termios before;
static bool has_keys;                 /* stdin is a terminal, whose settings are in `before` */
static volatile sig_atomic_t resized; /* or brought back to the foreground */
static volatile sig_atomic_t blank;   /* what was drawn is not there any more */
static struct buf shown;              /* drawn last */
static char typed[32];                /* and not taken yet */
static size_t typed_count;

/* The terminal may be gone: there is nothing to do about it. */
static void put(const char *text, size_t len)
{
    while (len > 0) {
        ssize_t n = write(STDOUT_FILENO, text, len);
        if (n < 0 && !again_wait(STDOUT_FILENO, POLLOUT))
            return;
        text += MAX(n, 0);
        len -= (size_t)MAX(n, 0);
    }
}

static void enter(void)
{
    struct termios raw = before;

    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    if (has_keys)
        tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
    blank = 1;
    put(ENTER, strlen(ENTER));
}

static void leave(void)
{
    put(LEAVE, strlen(LEAVE));
    if (has_keys)
        tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
}

static void end_by_signal(int signal_number)
{
    leave();
    if (signal_number == SIGINT)
        _exit(0);
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static void stop(int signal_number __attribute__((unused)))
{
    int saved_errno = errno;

    leave();
    raise(SIGSTOP);
    enter();
    resized = 1;
    errno = saved_errno;
}

static void resize(int signal_number __attribute__((unused)))
{
    resized = blank = 1;
}

static void on(int signal_number, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};

    /* none of them interrupts another one: each leaves or enters the screen */
    sigfillset(&action.sa_mask);
    sigaction(signal_number, &action, NULL);
}

int redraw_begin(struct err *err)
{
    const char *term = getenv("TERM");

    if (!isatty(STDOUT_FILENO))
        return err_set(err, ERR_USAGE, "standard output must be a terminal");
    if (!term || !*term || strcmp(term, "dumb") == 0)
        return err_set(err, ERR_USAGE, "TERM = %s is not a terminal whose screen can be redrawn",
                       term && *term ? term : "(not set)");
    typed_count = 0;
    has_keys = isatty(STDIN_FILENO) && tcgetattr(STDIN_FILENO, &before) == 0;
    on(SIGINT, end_by_signal);
    on(SIGTERM, end_by_signal);
    on(SIGHUP, end_by_signal);
    on(SIGQUIT, end_by_signal);
    on(SIGTSTP, stop);
    on(SIGWINCH, resize);
    enter();
    return 0;
}

void redraw_end(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH};

    leave();
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        signal(signals[i], SIG_DFL);
}

void redraw_size(unsigned *ret_width, unsigned *ret_height)
{
    struct winsize size = {.ws_col = 0};

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || !size.ws_col || !size.ws_row)
        size = (struct winsize){.ws_col = 80, .ws_row = 24};
    *ret_width = size.ws_col;
    *ret_height = size.ws_row;
}

/* Bytes of the escape sequence at the beginning of a text; 0: there is none. */
static size_t sequence(const char *p)
{
    size_t n = 2;

    if (p[0] != '\033' || p[1] != '[')
        return 0;
    while (p[n] && (p[n] < '@' || p[n] > '~'))
        n++;
    return n + (p[n] != '\0');
}

/* Appends the text up to its first newline, or its end, cut at `width` columns. Returns what
 * follows the newline; NULL: nothing. */
static const char *put_line(struct buf *b, const char *text, unsigned width)
{
    size_t len = strcspn(text, "\n"), n;
    unsigned used = 0;
    uint32_t c;

    for (size_t i = 0; i < len; i += n) {
        if ((n = sequence(text + i)) > 0) {
            buf_add(b, text + i, n);
            continue;
        }
        n = MAX(text_utf8_next(text + i, len - i, &c), 1);
        used += (unsigned)text_char_width(c);
        if (used <= width)
            buf_add(b, text + i, n);
    }
    return text[len] ? text + len + 1 : NULL;
}

void redraw_page(const char *text)
{
    BUF_LOCAL struct buf b = BUF_INIT;
    unsigned width, height, y = 0;

    if (!blank && strcmp(text, shown.data) == 0)
        return;
    blank = 0;
    buf_reset(&shown);
    buf_str(&shown, text);
    redraw_size(&width, &height);
    buf_str(&b, "\033[H");
    /* each line is cleared before it is written: behind a full one, the last character would go */
    for (; y < height && text; y++) {
        buf_str(&b, y ? "\r\n\033[K" : "\033[K");
        text = put_line(&b, text, width);
    }
    if (y < height)
        buf_str(&b, "\r\n\033[J");
    put(b.data, b.len);
}

/* Reads what has been typed; false: the terminal is gone. A resize that comes before poll is
 * noticed soon. */
static bool read_keys(void)
{
    struct pollfd keys = {.fd = has_keys ? STDIN_FILENO : -1, .events = POLLIN};

    if (poll(&keys, 1, KEY_MS) <= 0)
        return true;
    ssize_t n = read(STDIN_FILENO, typed + typed_count, sizeof typed - typed_count);
    typed_count += (size_t)MAX(n, 0);
    return n > 0 || (n < 0 && errno == EINTR);
}

int redraw_key(void)
{
    /* the bytes of a sequence come together, or nearly so */
    if ((!typed_count || (typed_count < 3 && typed[0] == '\033')) && !read_keys())
        return REDRAW_GONE;
    if (!typed_count)
        return REDRAW_NONE;
    bool is_sequence = typed_count > 2 && typed[0] == '\033' && strchr("[O", typed[1]);
    int key = !is_sequence      ? (unsigned char)typed[0]
              : typed[2] == 'A' ? REDRAW_UP
              : typed[2] == 'B' ? REDRAW_DOWN
                                : REDRAW_OTHER;
    typed_count -= is_sequence ? 3 : 1;
    memmove(typed, typed + (is_sequence ? 3 : 1), typed_count);
    return key;
}

bool redraw_wait(int64_t ms)
{
    int64_t end = when_steady() + ms;
    int key = REDRAW_NONE;

    while (!resized && when_steady() < end && key != REDRAW_GONE && key != 'q' && key != 'Q')
        key = redraw_key();
    resized = 0;
    return key != REDRAW_GONE && key != 'q' && key != 'Q';
}
