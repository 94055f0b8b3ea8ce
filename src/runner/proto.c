/*
 * proto.c - packets between poller and runner.
 *
 * Invariants: a packet holds whole messages only and never more than PROTO_PACKET_MAX bytes; the
 * k-th message of a packet that carries a descriptor owns the k-th descriptor; no get reads outside
 * its message.
 */
#include "runner/proto.h"

#include "base/mem.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define HEADER_SIZE 8 /* u32 size of the whole message, u32 type */
#define TEXT_NULL UINT32_MAX

struct proto_packet {
    struct proto_packet *next;
    struct buf data;
    int fds[PROTO_FDS_MAX];
    size_t fd_count;
};

static struct proto_packet *packet_new(struct proto_out *o)
{
    struct proto_packet *p = o->spare;

    o->spare = NULL;
    if (!p) {
        p = mem_alloc(sizeof *p);
        p->data = (struct buf)BUF_INIT;
    }
    p->next = NULL;
    p->fd_count = 0;
    if (o->last)
        o->last->next = p;
    else
        o->first = p;
    o->last = p;
    return p;
}

static void packet_free(struct proto_packet *p)
{
    if (!p)
        return;
    buf_done(&p->data);
    free(p);
}

static void packet_sent(struct proto_out *o)
{
    struct proto_packet *p = o->first;

    for (size_t i = 0; i < p->fd_count; i++)
        close(p->fds[i]);
    o->first = p->next;
    if (!o->first)
        o->last = NULL;
    packet_free(o->spare);
    buf_reset(&p->data);
    o->spare = p;
}

void proto_begin(struct proto_out *o, uint32_t type)
{
    struct proto_packet *p = o->last;

    if (!p || p->fd_count == PROTO_FDS_MAX)
        p = packet_new(o);
    o->start = p->data.len;
    o->first_fd = p->fd_count;
    proto_put_u32(o, 0);
    proto_put_u32(o, type);
}

void proto_put_u32(struct proto_out *o, uint32_t v)
{
    buf_add(&o->last->data, &v, sizeof v);
}

void proto_put_u64(struct proto_out *o, uint64_t v)
{
    buf_add(&o->last->data, &v, sizeof v);
}

void proto_put_i64(struct proto_out *o, int64_t v)
{
    buf_add(&o->last->data, &v, sizeof v);
}

void proto_put_bytes(struct proto_out *o, const void *p, size_t len)
{
    proto_put_u32(o, (uint32_t)len);
    if (len)
        buf_add(&o->last->data, p, len);
}

void proto_put_text(struct proto_out *o, const char *s)
{
    if (s)
        proto_put_bytes(o, s, strlen(s) + 1);
    else
        proto_put_u32(o, TEXT_NULL);
}

void proto_put_fd(struct proto_out *o, int fd)
{
    struct proto_packet *p = o->last;

    proto_put_u32(o, fd >= 0);
    if (fd >= 0)
        p->fds[p->fd_count++] = fd;
}

/* The open message did not fit: it begins a packet of its own. */
static void move_to_next(struct proto_out *o)
{
    struct proto_packet *from = o->last, *to = packet_new(o);

    buf_add(&to->data, from->data.data + o->start, from->data.len - o->start);
    from->data.len = o->start;
    while (from->fd_count > o->first_fd)
        to->fds[to->fd_count++] = from->fds[--from->fd_count];
}

void proto_end(struct proto_out *o)
{
    struct buf *b = &o->last->data;
    uint32_t size = (uint32_t)(b->len - o->start);

    assert(size <= PROTO_PACKET_MAX);
    memcpy(b->data + o->start, &size, sizeof size);
    if (b->len > PROTO_PACKET_MAX)
        move_to_next(o);
}

static ssize_t packet_send(const struct proto_packet *p, int sock)
{
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(sizeof p->fds)];
    } control = {.space = {0}};
    struct iovec iov = {p->data.data, p->data.len};
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};

    if (p->fd_count) {
        size_t len = p->fd_count * sizeof p->fds[0];
        m.msg_control = control.space;
        m.msg_controllen = (socklen_t)CMSG_SPACE(len);
        struct cmsghdr *c = &control.align;
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = (socklen_t)CMSG_LEN(len);
        memcpy(CMSG_DATA(c), p->fds, len);
    }
    return sendmsg(sock, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
}

int proto_flush(struct proto_out *o, int sock)
{
    while (o->first) {
        if (packet_send(o->first, sock) >= 0)
            packet_sent(o);
        else if (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM || errno == ETOOMANYREFS)
            /* ETOOMANYREFS: more descriptors are in flight than may be open, until the other side
             * receives some */
            return 1;
        else if (errno != EINTR)
            return -1;
    }
    return 0;
}

bool proto_pending(const struct proto_out *o)
{
    return o->first;
}

bool proto_full(const struct proto_out *o)
{
    return o->first && (o->first != o->last || o->first->fd_count == PROTO_FDS_MAX ||
                        o->first->data.len > PROTO_PACKET_MAX / 2);
}

void proto_out_done(struct proto_out *o)
{
    while (o->first)
        packet_sent(o);
    packet_free(o->spare);
    o->spare = NULL;
}

void proto_in_init(struct proto_in *in)
{
    memset(in, 0, sizeof *in);
    in->data = mem_alloc(PROTO_PACKET_MAX);
}

static void close_untaken(struct proto_in *in)
{
    while (in->fd_next < in->fd_count)
        close(in->fds[in->fd_next++]);
}

void proto_in_done(struct proto_in *in)
{
    close_untaken(in);
    free(in->data);
    in->data = NULL;
}

static void take_fds(struct proto_in *in, struct msghdr *m)
{
    in->fd_count = in->fd_next = 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        in->fd_count = (c->cmsg_len - CMSG_LEN(0)) / sizeof in->fds[0];
        memcpy(in->fds, CMSG_DATA(c), in->fd_count * sizeof in->fds[0]);
    }
}

int proto_recv(struct proto_in *in, int sock)
{
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(sizeof in->fds)];
    } control;
    struct iovec iov = {in->data, PROTO_PACKET_MAX};
    struct msghdr m = {.msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = control.space,
                       .msg_controllen = sizeof control.space};
    ssize_t n;

    close_untaken(in);
    in->len = in->pos = in->end = 0;
    /* ECONNRESET: the other side ended before it had read everything. It is reported once, and what
     * the other side had sent can still be read after it. */
    do
        n = recvmsg(sock, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    while (n < 0 && (errno == EINTR || errno == ECONNRESET));
    if (n < 0 && errno == EAGAIN)
        return 0;
    if (n <= 0)
        return -1;
    take_fds(in, &m);
    in->len = (size_t)n;
    return m.msg_flags & MSG_TRUNC ? -1 : 1;
}

int proto_next(struct proto_in *in, uint32_t *ret_type)
{
    in->pos = in->end;
    if (in->bad)
        return -1;
    if (in->pos == in->len)
        return 0;
    in->end = in->len;
    uint32_t size = proto_get_u32(in), type = proto_get_u32(in);
    size_t start = in->pos - HEADER_SIZE;
    if (in->bad || size < HEADER_SIZE || size > in->len - start || !type) {
        in->bad = true;
        return -1;
    }
    in->end = start + size;
    *ret_type = type;
    return 1;
}

/* The next len bytes of the message; NULL, and bad is set, if there are not that many. */
static const void *take(struct proto_in *in, size_t len)
{
    if (in->bad || len > in->end - in->pos) {
        in->bad = true;
        return NULL;
    }
    const void *p = in->data + in->pos;
    in->pos += len;
    return p;
}

uint32_t proto_get_u32(struct proto_in *in)
{
    uint32_t v = 0;
    const void *p = take(in, sizeof v);

    if (p)
        memcpy(&v, p, sizeof v);
    return v;
}

uint64_t proto_get_u64(struct proto_in *in)
{
    uint64_t v = 0;
    const void *p = take(in, sizeof v);

    if (p)
        memcpy(&v, p, sizeof v);
    return v;
}

int64_t proto_get_i64(struct proto_in *in)
{
    return (int64_t)proto_get_u64(in);
}

const void *proto_get_bytes(struct proto_in *in, size_t *ret_len)
{
    uint32_t len = proto_get_u32(in);
    const void *p = take(in, len);

    *ret_len = p ? len : 0;
    return p ? p : "";
}

const char *proto_get_text(struct proto_in *in, size_t max)
{
    uint32_t len = proto_get_u32(in);

    if (in->bad || len == TEXT_NULL)
        return NULL;
    const char *s = take(in, len);
    if (s && (len == 0 || len - 1 > max || memchr(s, 0, len) != s + len - 1)) {
        in->bad = true;
        return NULL;
    }
    return s;
}

int proto_get_fd(struct proto_in *in)
{
    if (!proto_get_u32(in))
        return -1;
    return in->fd_next < in->fd_count ? in->fds[in->fd_next++] : PROTO_FD_LOST;
}
