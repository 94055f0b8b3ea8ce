/*
 * input.c - what a handler reads on stdin: a sealed memfd, so that no pipe can fill, break or
 * block, and no process can change it while the handler reads.
 */
#include "runner/input.h"

#include "base/buf.h"
#include "base/json.h"
#include "base/slot.h"
#include "base/when.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int input_memory(const char *name, const void *p, size_t size)
{
    off_t at = 0;
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING), error;

    while (fd >= 0 && (size_t)at < size) {
        ssize_t n = pwrite(fd, (const char *)p + at, size - (size_t)at, at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            goto fail;
        at += n;
    }
    if (fd < 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) == 0)
        return fd;
fail:
    error = errno;
    close(fd);
    errno = error;
    return -1;
}

int input_long(const void *p, size_t size, struct err *err)
{
    int fd = input_memory("dq-body", p, size);

    if (fd >= 0)
        return fd;
    if (errno == EFBIG)
        err_set(
            err, ERR_DATA,
            "a body of %zu bytes is longer than dqd may write: raise its limit of file sizes (ulimit -f, "
            "LimitFSIZE)",
            size);
    else
        err_set(err, err_system(errno), "cannot make the handler's stdin: %s", strerror(errno));
    return -1;
}

static void put_slot(struct buf *b, const struct task *t)
{
    size_t name;
    const char *slot = slot_in_key(t->key, &name);

    if (!slot)
        return;
    buf_str(b, ",\"schedule\":");
    json_put_string(b, t->key, name);
    buf_str(b, ",\"slot\":");
    json_put_string(b, slot, strlen(slot));
    buf_str(b, ",\"missed\":");
    buf_u64(b, (unsigned)t->missed_slots);
}

static void put_line(struct buf *b, const struct task *t)
{
    char when[WHEN_TEXT_SIZE];

    buf_str(b, "{\"id\":");
    buf_u64(b, t->id);
    buf_str(b, ",\"tag\":");
    json_put_string(b, t->tag, strlen(t->tag));
    if (t->key) {
        buf_str(b, ",\"key\":");
        json_put_string(b, t->key, strlen(t->key));
    }
    if (t->missed_slots >= 0)
        put_slot(b, t);
    buf_str(b, ",\"run_id\":\"");
    task_put_run_id(b, t->id, t->run);
    buf_str(b, "\",\"attempt\":");
    buf_u64(b, t->attempt);
    buf_str(b, ",\"max_attempts\":");
    buf_u64(b, t->max_attempts);
    buf_str(b, ",\"expected_time\":\"");
    buf_str(b, when_format_utc(when, t->expected_at));
    buf_str(b, "\",\"token\":");
    buf_u64(b, t->version);
    buf_chr(b, ',');
    json_put_bytes(b, "body", t->body, t->body_size);
    buf_str(b, "}\n");
}

void input_put_lines(struct buf *b, const struct task *tasks, size_t count)
{
    for (size_t i = 0; i < count; i++)
        put_line(b, &tasks[i]);
}
