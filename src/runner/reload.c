/*
 * reload.c - reads the handlers file in a thread. Invariant: there is at most one thread; what it
 * shares with the loop belongs to the thread until `ready` is set.
 */
#include "runner/reload.h"

#include "base/buf.h"
#include "base/mem.h"
#include "conf/handlers_load.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

struct reload {
    const char *path;
    int event;
    bool reading, again;
    atomic_bool ready;
    /* the result */
    struct buf text;
    struct handlers *handlers; /* NULL: see err */
    struct err err;
};

struct reload *reload_new(const char *path)
{
    int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct reload *l;

    if (event < 0)
        return NULL;
    l = mem_zero(1, sizeof *l);
    l->path = path;
    l->event = event;
    return l;
}

int reload_fd(const struct reload *l)
{
    return l->event;
}

static void finish(struct reload *l)
{
    const uint64_t one = 1;

    atomic_store(&l->ready, true);
    while (write(l->event, &one, sizeof one) < 0 && errno == EINTR)
        ;
}

static void *read_file(void *arg)
{
    struct reload *l = arg;

    if (handlers_load_text(l->path, &l->text, &l->handlers, &l->err) < 0)
        l->handlers = NULL;
    finish(l);
    return NULL;
}

void reload_ask(struct reload *l)
{
    pthread_attr_t attr;
    pthread_t thread;
    int rc;

    l->again = l->reading;
    if (l->reading)
        return;
    l->reading = true;
    atomic_store(&l->ready, false);
    buf_reset(&l->text);
    l->handlers = NULL;
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    rc = pthread_create(&thread, &attr, read_file, l);
    pthread_attr_destroy(&attr);
    if (rc != 0) {
        err_set(&l->err, ERR_SYSTEM, "%s: cannot start a thread to read it: %s", l->path,
                strerror(rc));
        finish(l);
    }
}

static int copy_text(const struct buf *text, struct err *err)
{
    int fd = memfd_create("dq-handlers", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    size_t at = 0;

    while (fd >= 0 && at < text->len) {
        ssize_t n = write(fd, text->data + at, text->len - at);

        if (n < 0 && errno != EINTR)
            break;
        at += n > 0 ? (size_t)n : 0;
    }
    if (fd >= 0 && at == text->len &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) == 0)
        return fd;
    err_set(err, ERR_SYSTEM, "cannot copy the handlers file for the poller: %s", strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

bool reload_take(struct reload *l, struct handlers **ret, int *ret_text, struct err *err)
{
    uint64_t count;

    if (read(l->event, &count, sizeof count) < 0 || !l->reading || !atomic_load(&l->ready))
        return false;
    l->reading = false;
    *ret = l->handlers;
    *err = l->err;
    *ret_text = -1;
    if (*ret && (*ret_text = copy_text(&l->text, err)) < 0) {
        handlers_free(*ret);
        *ret = NULL;
    }
    if (l->again)
        reload_ask(l);
    return true;
}
