/*
 * proto.h - packets between poller and runner: many messages to a packet of a SOCK_SEQPACKET socket
 * pair, descriptors by SCM_RIGHTS. message.h has the messages.
 *
 * Both ends are the same program on the same host, so numbers go as they lie in memory. Still
 * nothing that was read is trusted: the other side may have been taken over. Every get checks its
 * bounds; a message that ends early or a text that is not one is noted in `bad` and reads as zero,
 * and the reader drops the link.
 */
#ifndef DQ_RUNNER_PROTO_H
#define DQ_RUNNER_PROTO_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROTO_PACKET_MAX (100 * 1024)
#define PROTO_FDS_MAX 128 /* in one packet; the kernel allows 253 */

struct proto_packet;

/* What waits to be sent, in order. */
struct proto_out {
    struct proto_packet *first, *last;
    struct proto_packet *spare; /* one emptied packet, kept for the next */
    size_t start, first_fd;     /* of the open message in last */
};

/* Opens a message, which may get PROTO_PACKET_MAX bytes at most. type > 0. */
void proto_begin(struct proto_out *o, uint32_t type);
void proto_put_u32(struct proto_out *o, uint32_t v);
void proto_put_u64(struct proto_out *o, uint64_t v);
void proto_put_i64(struct proto_out *o, int64_t v);
void proto_put_bytes(struct proto_out *o, const void *p, size_t len);
void proto_put_text(struct proto_out *o, const char *s); /* NULL stays NULL */
/* fd >= 0 goes along and is closed once sent; -1: there is none. At most one in a message. */
void proto_put_fd(struct proto_out *o, int fd);
void proto_end(struct proto_out *o);

/* Sends what the socket takes. 0: nothing is left; 1: some waits; -1: the other side is gone
 * (errno). Never blocks. */
int proto_flush(struct proto_out *o, int sock) __attribute__((warn_unused_result));
bool proto_pending(const struct proto_out *o);
bool proto_full(const struct proto_out *o); /* a packet is complete: worth a flush */
void proto_out_done(struct proto_out *o);

/* One packet that was received. What get returns points into it. */
struct proto_in {
    char *data;
    size_t len, pos, end; /* of the packet; of the next get; of the message */
    int fds[PROTO_FDS_MAX];
    size_t fd_count, fd_next;
    bool bad; /* sticks: what was got since is not to be used */
};

void proto_in_init(struct proto_in *in);
void proto_in_done(struct proto_in *in); /* also closes descriptors nobody took */
/* Reads a packet over the last one. 1; 0: none is there; -1: end of file or error. Never blocks. */
int proto_recv(struct proto_in *in, int sock) __attribute__((warn_unused_result));
/* Moves to the next message: 1 and its type, 0 at the end of the packet, -1 when the packet is
 * malformed. */
int proto_next(struct proto_in *in, uint32_t *ret_type) __attribute__((warn_unused_result));
uint32_t proto_get_u32(struct proto_in *in);
uint64_t proto_get_u64(struct proto_in *in);
int64_t proto_get_i64(struct proto_in *in);
const void *proto_get_bytes(struct proto_in *in, size_t *ret_len); /* never NULL */
const char *proto_get_text(struct proto_in *in, size_t max);       /* NUL-terminated, or NULL */
#define PROTO_FD_LOST (-2)
/* The descriptor of this message, now the caller's; -1: it has none; PROTO_FD_LOST: it did not
 * arrive (too many open files). */
int proto_get_fd(struct proto_in *in);

#endif
