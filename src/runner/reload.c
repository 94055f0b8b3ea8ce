/*
 * reload.c - reads the handlers file in a thread. Invariant: there is at most one thread; what it
 * shares with the loop belongs to the thread until `ready` is set.
 */
#include "runner/reload.h"

#include "base/buf.h"
#include "base/mem.h"
#include "conf/handlers_load.h"
#include "runner/input.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
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
    int fd = input_memory("dq-handlers", text->data, text->len);

    if (fd < 0)
        err_set(err, ERR_SYSTEM, "cannot copy the handlers file for the poller: %s",
                strerror(errno));
    return fd;
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
