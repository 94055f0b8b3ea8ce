/*
 * log.c - one line an event on stderr.
 *
 * Invariant: an event is one write of one line without control characters, whatever its fields contained. errno is kept.
 */
#include "base/log.h"
#include "base/buf.h"
#include "base/text.h"
#include "base/when.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 2000, QUOTE_MAX_BYTES = 200, QUOTE_RING = 8 };

static struct {
    const char *name;
    int level;
    bool journal; /* stderr is the journal: it knows the time and wants the priority */
} log_state = {"dq", LOG_INFO, false};

static const char *const level_names[] = {
    [LOG_ALARM] = "alarm", [LOG_ERROR] = "error", [LOG_WARN] = "warn",
    [LOG_NOTE] = "notice", [LOG_INFO] = "info",   [LOG_DEBUG] = "debug",
};
enum { LEVEL_COUNT = sizeof level_names / sizeof *level_names };

/* systemd names the stream it has connected, so that a redirected stderr is told from it. */
static bool stderr_is_journal(void)
{
    const char *stream = getenv("JOURNAL_STREAM");
    unsigned long long device, inode;
    struct stat st;

    return stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 && !fstat(STDERR_FILENO, &st) && st.st_dev == device &&
           st.st_ino == inode;
}

void log_fill_descriptors(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
            abort();
    }
}

void log_open(const char *name, int level)
{
    log_state.name = name;
    log_state.level = level;
    log_state.journal = stderr_is_journal();
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

static void cut_at_character(struct buf *b, size_t max)
{
    while (((unsigned char)b->data[max] & 0xc0) == 0x80)
        max--;
    b->len = max;
}

void log_event(int level, const char *msg, const char *fields, ...)
{
    static struct buf line = BUF_INIT;
    char now[WHEN_TEXT_SIZE];
    int saved_errno = errno;
    const char *level_name = level > 0 && level < LEVEL_COUNT && level_names[level] ? level_names[level] : "info";
    va_list ap;

    if (level > log_state.level)
        return;
    buf_reset(&line);
    if (log_state.journal)
        buf_printf(&line, "<%d>", level);
    else
        buf_printf(&line, "%s ", when_format_utc(now, when_host_wall()));
    buf_printf(&line, "%s %s msg=\"%s\"", level_name, log_state.name, msg);
    buf_chr(&line, ' ');
    va_start(ap, fields);
    buf_vprintf(&line, fields, ap);
    va_end(ap);
    if (line.data[line.len - 1] == ' ') /* no fields */
        line.len--;
    if (line.len >= LINE_MAX_BYTES) {
        cut_at_character(&line, LINE_MAX_BYTES - 4);
        buf_str(&line, "...");
    }
    for (char *p = line.data; p < line.data + line.len; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = '?';
    buf_chr(&line, '\n');
    while (write(STDERR_FILENO, line.data, line.len) < 0 && errno == EINTR)
        ;
    errno = saved_errno;
}

const char *log_quote(const char *text)
{
    static struct buf ring[QUOTE_RING];
    static unsigned next;

    if (!text)
        return "-";
    size_t len = strlen(text);
    /* What needs no quotes: everything that a reader splitting at blanks and '=' cannot mistake. */
    if (len && len <= QUOTE_MAX_BYTES &&
        strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-:/@%+,*?#~") == len)
        return text;

    struct buf *b = &ring[next++ % QUOTE_RING];
    size_t shown = len < QUOTE_MAX_BYTES ? len : QUOTE_MAX_BYTES;
    while (shown < len && shown && ((unsigned char)text[shown] & 0xc0) == 0x80)
        shown--;
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
