/*
 * infile.c - reading by lines.
 *
 * Invariant: data[start .. len) is what was read and not yet returned; its first `scanned` bytes
 * hold no newline.
 */
#include "cli/line/infile.h"
#include "base/again.h"
#include "base/interrupt.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_SIZE (256u << 10)
#define INTERRUPT_MS 100 /* one that comes just before a wait is noticed within this time */

int infile_open(struct infile *l, const char *path, uint64_t line_max, struct err *err)
{
    struct stat st;
    bool is_stdin = strcmp(path, "-") == 0;
    *l = (struct infile){.name = is_stdin ? "standard input" : path,
                         .fd = is_stdin ? STDIN_FILENO : -1,
                         .line_max = line_max,
                         .data = BUF_INIT};
    if (!is_stdin)
        l->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (l->fd < 0)
        return err_set(err, ERR_DATA, "cannot open %s: %s", path, strerror(errno));
    if (fstat(l->fd, &st) == 0 && S_ISREG(st.st_mode))
        l->size = (uint64_t)st.st_size;
    l->origin = lseek(l->fd, 0, SEEK_CUR);
    return 0;
}

void infile_done(struct infile *l)
{
    if (l->fd > STDIN_FILENO)
        close(l->fd);
    buf_done(&l->data);
}

int infile_rewind(struct infile *l, struct err *err)
{
    if (l->size && lseek(l->fd, l->origin, SEEK_SET) < 0)
        return err_set(err, ERR_DATA, "cannot read %s twice: %s", l->name, strerror(errno));
    if (l->size)
        buf_reset(&l->data);
    l->start = l->size ? 0 : (size_t)l->origin;
    l->scanned = 0;
    l->number = l->bytes = 0;
    l->ended = !l->size;
    return 0;
}

static int check_interrupt(const struct infile *l, struct err *err)
{
    if (!interrupt_asked())
        return 0;
    return err_set(err, ERR_TRANSIENT, "%s: interrupted at line %llu", l->name,
                   (unsigned long long)l->number);
}

/* A read goes on after an interrupt that is caught, and a pipe can be silent forever. */
static int wait_for_input(const struct infile *l, struct err *err)
{
    struct pollfd in = {.fd = l->fd, .events = POLLIN};
    int n, rc = 0;
    while (rc == 0 && ((n = poll(&in, 1, INTERRUPT_MS)) == 0 || (n < 0 && errno == EINTR)))
        rc = check_interrupt(l, err);
    return rc;
}

/* Reads more bytes behind data; sets ended if there are none. */
static int infile_fill(struct infile *l, struct err *err)
{
    if (l->start > 0) {
        memmove(l->data.data, l->data.data + l->start, l->data.len - l->start);
        l->data.len -= l->start;
        l->start = 0;
    }
    if (l->data.len > l->line_max)
        return err_set(err, ERR_DATA, "%s:%llu: the line is longer than %llu MiB", l->name,
                       (unsigned long long)l->number + 1, (unsigned long long)l->line_max >> 20);
    int rc = wait_for_input(l, err);
    if (rc < 0)
        return rc;
    buf_reserve(&l->data, READ_SIZE);
    ssize_t n;
    do
        n = read(l->fd, l->data.data + l->data.len, READ_SIZE);
    while (n < 0 && again_wait(l->fd, POLLIN));
    if (n < 0)
        return err_set(err, ERR_DATA, "cannot read %s: %s", l->name, strerror(errno));
    l->data.len += (size_t)n;
    l->ended = n == 0;
    if (l->number == 0 && l->bytes == 0 && l->data.len >= 3 &&
        memcmp(l->data.data, "\xef\xbb\xbf", 3) == 0) {
        l->start = 3;
        l->bytes = 3;
    }
    return 0;
}

int infile_keep(struct infile *l, struct err *err)
{
    int rc = 0;

    if (l->size)
        return 0;
    l->line_max = UINT64_MAX;
    while (rc == 0 && !l->ended)
        rc = infile_fill(l, err);
    l->origin = (off_t)l->start;
    return rc;
}

int infile_next(struct infile *l, const char **ret_line, size_t *ret_len, struct err *err)
{
    int rc = check_interrupt(l, err);
    while (rc == 0) {
        size_t unread = l->data.len - l->start;
        const char *line = unread > 0 ? l->data.data + l->start : "";
        const char *end =
            unread > l->scanned ? memchr(line + l->scanned, '\n', unread - l->scanned) : NULL;
        if (!end && !l->ended) {
            l->scanned = unread;
            rc = infile_fill(l, err);
            continue;
        }
        if (!end && unread == 0)
            return 0;
        *ret_line = line;
        *ret_len = end ? (size_t)(end - line) : unread;
        size_t taken = *ret_len + !!end;
        l->start += taken;
        l->bytes += taken;
        l->scanned = 0;
        l->number++;
        return 1;
    }
    return rc;
}
