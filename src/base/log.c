/*
 * log.c - one line per event on stderr.
 *
 * Invariant: an event is one write of one line without control characters, whatever its fields
 * contained, and no write waits for a reader: a pipe, socket or terminal that is full loses the
 * line. errno is kept.
 */
#include "base/log.h"
#include "base/buf.h"
#include "base/text.h"
#include "base/when.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 2000, QUOTE_MAX_BYTES = 200, QUOTE_RING = 8 };

/* How lines are written without waiting. O_NONBLOCK on stderr itself would also change it for the
 * shell and other processes that share it. */
enum log_way {
    LOG_WAY_FILE,   /* a file never waits for a reader */
    LOG_WAY_OPENED, /* the same pipe or terminal, opened a second time with O_NONBLOCK */
    LOG_WAY_SOCKET, /* MSG_DONTWAIT */
    /* it could not be opened (another account's): written to only when poll(2) says that there is
       room */
    LOG_WAY_POLLING,
};

static struct {
    const char *name;
    int level;
    bool journal; /* stderr is the journal: it knows the time and wants the priority */
    enum log_way way;
    int fd;
    unsigned long lost; /* lines since the last one that was written */
} log_state = {"dq", LOG_INFO, false, LOG_WAY_POLLING, STDERR_FILENO, 0};

static const char *const level_names[] = {
    [LOG_ERROR] = "error", [LOG_WARN] = "warn",   [LOG_NOTE] = "notice",
    [LOG_INFO] = "info",   [LOG_DEBUG] = "debug",
};
enum { LEVEL_COUNT = sizeof level_names / sizeof *level_names };

/* systemd names the stream that it connected; a redirected stderr is another one. */
static bool stderr_is_journal(void)
{
    const char *stream = getenv("JOURNAL_STREAM");
    unsigned long long device, inode;
    struct stat st;

    return stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 &&
           !fstat(STDERR_FILENO, &st) && st.st_dev == device && st.st_ino == inode;
}

void log_fill_descriptors(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0 &&
            open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
            abort();
    }
}

/* A descriptor from before is left alone: the process may have closed it, and its number may be
 * something else's. */
static void choose_way(void)
{
    struct stat st;

    log_state.fd = STDERR_FILENO;
    log_state.way = LOG_WAY_POLLING;
    if (fstat(STDERR_FILENO, &st) < 0)
        return;
    if (S_ISSOCK(st.st_mode))
        log_state.way = LOG_WAY_SOCKET;
    else if (S_ISREG(st.st_mode))
        log_state.way = LOG_WAY_FILE;
    else {
        int fd = open("/proc/self/fd/2", O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

        if (fd < 0)
            return;
        log_state.fd = fd;
        log_state.way = LOG_WAY_OPENED;
    }
}

void log_open(const char *name, int level)
{
    log_state.name = name;
    log_state.level = level;
    log_state.journal = stderr_is_journal();
    choose_way();
}

void log_set_level(int level)
{
    log_state.level = level;
}

int log_level(void)
{
    return log_state.level;
}

int log_level_parse(const char *name)
{
    for (int i = LOG_ERROR; i < LEVEL_COUNT; i++)
        if (!strcmp(level_names[i], name))
            return i;
    return -1;
}

#ifndef RWF_NOWAIT /* musl before 1.2.5 has neither */
#define RWF_NOWAIT 0
static ssize_t pwritev2(int fd __attribute__((unused)),
                        const struct iovec *parts __attribute__((unused)),
                        int count __attribute__((unused)), off_t at __attribute__((unused)),
                        int flags __attribute__((unused)))
{
    errno = EOPNOTSUPP;
    return -1;
}
#endif

/* Fails with EAGAIN if it would have to wait. */
static ssize_t write_some(const char *data, size_t len)
{
    struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};
    struct iovec part = {(void *)(uintptr_t)data, len};
    ssize_t n;

    switch (log_state.way) {
    case LOG_WAY_SOCKET:
        return send(STDERR_FILENO, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);
    case LOG_WAY_POLLING:
        if (poll(&p, 1, 0) == 0) {
            errno = EAGAIN;
            return -1;
        }
        /* Another process may have filled it since; not every kernel and kind of file knows
         * RWF_NOWAIT. */
        n = pwritev2(STDERR_FILENO, &part, 1, -1, RWF_NOWAIT);
        return n < 0 && errno == EOPNOTSUPP ? write(STDERR_FILENO, data, len) : n;
    default:
        return write(log_state.fd, data, len);
    }
}

/* Whether it was written, at least its beginning (a terminal may take less than all). */
static bool write_line(const struct buf *line)
{
    ssize_t n;

    while ((n = write_some(line->data, line->len)) < 0 && errno == EINTR)
        ;
    return n >= 0;
}

static void begin_line(struct buf *line, int level, const char *msg)
{
    char now[WHEN_TEXT_SIZE];
    const char *level_name =
        level > 0 && level < LEVEL_COUNT && level_names[level] ? level_names[level] : "info";

    buf_reset(line);
    if (log_state.journal)
        buf_printf(line, "<%d>", level);
    else
        buf_printf(line, "%s ", when_format_utc(now, when_host_wall()));
    buf_printf(line, "%s %s msg=\"%s\"", level_name, log_state.name, msg);
}

void log_catch_up(void)
{
    static struct buf line = BUF_INIT;
    int saved_errno = errno;

    if (!log_state.lost)
        return;
    begin_line(&line, LOG_WARN, "log lines were lost because nobody read them");
    buf_printf(&line, " lines=%lu\n", log_state.lost);
    if (write_line(&line))
        log_state.lost = 0;
    errno = saved_errno;
}

void log_event(int level, const char *msg, const char *fields, ...)
{
    static struct buf line = BUF_INIT;
    int saved_errno = errno;
    va_list ap;

    if (level > log_state.level)
        return;
    begin_line(&line, level, msg);
    buf_chr(&line, ' ');
    va_start(ap, fields);
    buf_vprintf(&line, fields, ap);
    va_end(ap);
    if (line.data[line.len - 1] == ' ') /* no fields */
        line.len--;
    if (line.len >= LINE_MAX_BYTES) {
        line.len = text_cut(line.data, LINE_MAX_BYTES - 4);
        buf_str(&line, "...");
    }
    for (char *p = line.data; p < line.data + line.len; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = '?';
    buf_chr(&line, '\n');
    log_catch_up();
    if (log_state.lost || !write_line(&line))
        log_state.lost++;
    errno = saved_errno;
}

void log_say(const char *text)
{
    BUF_LOCAL struct buf line = BUF_INIT;

    buf_printf(&line, "%s\n", text);
    (void)write_line(&line);
}

const char *log_quote(const char *text)
{
    static struct buf ring[QUOTE_RING];
    static unsigned next;

    if (!text)
        return "-";
    size_t len = strlen(text);
    /* no quotes, if a reader that splits at blanks and '=' cannot mistake the text */
    if (len && len <= QUOTE_MAX_BYTES &&
        strspn(text,
               "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-:/@%+,*?#~") ==
            len)
        return text;

    struct buf *b = &ring[next++ % QUOTE_RING];
    size_t shown = len <= QUOTE_MAX_BYTES ? len : text_cut(text, QUOTE_MAX_BYTES);
    buf_reset(b);
    buf_chr(b, '"');
    for (const char *p = text, *end = text + shown; p < end; p++) {
        const char *quote = memchr(p, '"', (size_t)(end - p));
        text_escape(b, p, (size_t)((quote ? quote : end) - p), 0);
        if (!quote)
            break;
        buf_str(b, "\\\"");
        p = quote;
    }
    if (shown < len)
        buf_str(b, "…");
    buf_chr(b, '"');
    return b->data;
}
