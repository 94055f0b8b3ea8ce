/*
 * proto.h - packets between poller and runner: many messages to a packet of a SOCK_SEQPACKET socket
 * pair, descriptors by SCM_RIGHTS. message.h has the messages.
 *
 * Both ends are the same program on the same host, so numbers are sent as they are in memory.
 * Still, nothing that was received is trusted, because the other side may have been taken over.
 * Every get checks its bounds: if a message ends early or a text is malformed, it sets `bad` and
 * returns zero, and the reader drops the link.
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

/* Packets to send, in order. All zero: none. */
struct proto_out {
    struct proto_packet *first, *last;
    struct proto_packet *spare; /* one emptied packet, kept for the next */
    size_t start, first_fd;     /* of the open message in last */
};

/* Begins a message, which may have at most PROTO_PACKET_MAX bytes. type > 0. */
void proto_begin(struct proto_out *o, uint32_t type);
void proto_put_u32(struct proto_out *o, uint32_t v);
void proto_put_u64(struct proto_out *o, uint64_t v);
void proto_put_i64(struct proto_out *o, int64_t v);
void proto_put_bytes(struct proto_out *o, const void *p, size_t len);
void proto_put_text(struct proto_out *o, const char *s); /* NULL stays NULL */
/* Sends a descriptor along and closes it then; -1: there is none. At most one per message. */
void proto_put_fd(struct proto_out *o, int fd);
void proto_end(struct proto_out *o);

/* Sends as much as the socket takes. 0: everything was sent; 1: some is left; -1: the other side is
 * gone (errno). Does not block. */
int proto_flush(struct proto_out *o, int sock) __attribute__((warn_unused_result));
bool proto_pending(const struct proto_out *o);
bool proto_full(const struct proto_out *o); /* a packet is full: worth a flush */
void proto_out_done(struct proto_out *o);   /* drops what was not sent, closes its descriptors */

/* One received packet. Pointers that a get returns are into it. */
struct proto_in {
    char *data;
    size_t len, pos, end; /* of the packet; of the next get; of the message */
    int fds[PROTO_FDS_MAX];
    size_t fd_count, fd_next;
    bool bad; /* stays set: do not use what was got since */
};

void proto_in_init(struct proto_in *in);
void proto_in_done(struct proto_in *in); /* also closes descriptors that were not taken */
/* Reads a packet, which replaces the last one. 1; 0: there is none; -1: end of file or error. Does
 * not block. */
int proto_recv(struct proto_in *in, int sock) __attribute__((warn_unused_result));
/* Moves to the next message. 1: *ret_type is its type; 0: the packet ends here; -1: it is
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
