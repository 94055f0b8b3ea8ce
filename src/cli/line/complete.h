/*
 * complete.h - what the last word of a command line of dq may become, by the tables of verbs and
 * options.
 */
#ifndef DQ_CLI_LINE_COMPLETE_H
#define DQ_CLI_LINE_COMPLETE_H

#include "base/buf.h"

#include <stdbool.h>

/* what to offer besides the words of the tables */
enum complete_more {
    COMPLETE_NO_MORE,
    COMPLETE_FILES,
    COMPLETE_TAGS,
    COMPLETE_IDS,
    COMPLETE_KEYS,
};

/* Appends a line for each word that the tables offer: the word, a tab, its help. words[0..count-1]
 * follow `dq`; the last one is to be completed, and may be empty. *ret_stem is its part that
 * other words must begin with, `lead` bytes behind its beginning, which they must keep: --tag=. It
 * points into words, as does *ret_config, the value of --config; NULL: not given. */
enum complete_more complete_line(struct buf *b, char **words, int count, const char **ret_stem,
                                 size_t *ret_lead, const char **ret_config);

/* Whether the word has no character that a shell or a terminal acts on. */
bool complete_is_inert(const char *word);

#endif
