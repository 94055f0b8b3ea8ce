/*
 * body.c - see body.h.
 */
#include "cli/show/body.h"

#include "base/again.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define BODY_MAX ((size_t)1 << 30) /* the largest max_allowed_packet there is */

static int read_whole(int fd, const char *name, struct buf *ret, struct err *err)
{
    for (;;) {
        buf_reserve(ret, 64 << 10);
        ssize_t n = read(fd, ret->data + ret->len, 64 << 10);
        if (n < 0 && again_wait(fd, POLLIN))
            continue;
        if (n < 0)
            return err_set(err, ERR_DATA, "cannot read %s: %s", name, strerror(errno));
        if (n == 0)
            return 0;
        ret->len += (size_t)n;
        if (ret->len > BODY_MAX)
            return err_set(err, ERR_DATA,
                           "the body in %s is longer than 1 GiB, more than any server takes", name);
    }
}

/* Whether bytes wait at standard input that are most likely meant as the body. Not the rest of a
 * file that is already read in part: it belongs to a loop, as in `while read tag; do dq add "$tag";
 * done <tags`. Never waits, so that dq works in cron, in ssh and under any parent. */
static bool input_waits(void)
{
    struct stat st;
    int bytes = 0;

    if (fstat(STDIN_FILENO, &st) < 0)
        return false;
    if (S_ISREG(st.st_mode))
        return st.st_size > 0 && lseek(STDIN_FILENO, 0, SEEK_CUR) == 0;
    return (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)) &&
           ioctl(STDIN_FILENO, FIONREAD, &bytes) == 0 && bytes > 0;
}

int body_check_input(struct err *err)
{
    if (!input_waits())
        return 0;
    return err_set(
        err, ERR_USAGE,
        "standard input has data, and no BODY is given: add - to read it, or \"\" for an empty body");
}

int body_read(const char *word, struct buf *ret, struct err *err)
{
    if (!word)
        return body_check_input(err);
    if (strcmp(word, "-") == 0)
        return read_whole(STDIN_FILENO, "standard input", ret, err);
    if (word[0] != '@') {
        buf_str(ret, word);
        return 0;
    }
    if (word[1] == '\0')
        return err_set(
            err, ERR_USAGE,
            "no file name after @ (to add a body that begins with @, use standard input)");
    int fd = open(word + 1, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return err_set(err, ERR_DATA, "cannot open %s: %s", word + 1, strerror(errno));
    int rc = read_whole(fd, word + 1, ret, err);
    close(fd);
    return rc;
}
