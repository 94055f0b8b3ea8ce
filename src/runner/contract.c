/*
 * contract.c - see contract.h.
 */
#include "runner/contract.h"

static const struct contract single = {.lines = false};
static const struct contract stays = {.lines = true, .verdicts = true, .stays = true};
static const struct contract batch = {.lines = true, .verdicts = true, .on_stdout = true};

const struct contract *contract_of(const struct handler *h)
{
    return h->keep ? &stays : h->batch > 1 ? &batch : &single;
}
