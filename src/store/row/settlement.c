/*
 * settlement.c - results cut to what the server takes in a packet. Invariant: the end of an output
 * is kept.
 */
#include "store/row/settlement.h"
#include "base/mem.h"

#include <stdlib.h>

int settlement_max_packet(struct db *db, size_t *ret_bytes, struct err *err)
{
    size_t packet;

    int rc = db_max_packet(db, &packet, err);
    if (rc == 0 && packet < SETTLEMENT_PACKET_LEAST)
        rc = err_set(err, ERR_CONFIG, "%s: max_allowed_packet is %zu bytes; dqd needs at least %zu",
                     db_server(db), packet, SETTLEMENT_PACKET_LEAST);
    if (rc == 0)
        *ret_bytes = packet;
    return rc;
}

/* Replaces the output by its end, after a line that says so. */
static void cut_output(struct settlement *s, size_t most)
{
    struct buf cut = BUF_INIT;

    buf_printf(
        &cut,
        "[dq: truncated from %zu bytes to the last %zu: the server's max_allowed_packet is too small for more]\n",
        s->output_size, most);
    buf_add(&cut, (const char *)s->output + s->output_size - most, most);
    s->output_size = cut.len;
    s->output = buf_take(&cut);
}

struct settlement *settlement_fit(const struct settlement *s, size_t count, size_t most)
{
    struct settlement *fit = NULL;

    for (size_t i = 0; i < count; i++) {
        if (s[i].output_size <= most)
            continue;
        if (!fit)
            fit = mem_dup(s, count * sizeof *s);
        cut_output(&fit[i], most);
    }
    return fit;
}

void settlement_free_fit(struct settlement *fit, const struct settlement *s, size_t count)
{
    for (size_t i = 0; fit && i < count; i++)
        if (fit[i].output != s[i].output)
            free((void *)fit[i].output);
    free(fit);
}
