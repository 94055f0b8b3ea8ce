/*
 * words.h - a line as a shell reads it, as long as no shell is needed: words, blanks, quotes.
 */
#ifndef DQ_BASE_WORDS_H
#define DQ_BASE_WORDS_H

#include <stdbool.h>

/* Splits a line at blanks. Quotes and backslashes are taken as sh(1) takes them. *ret is
 * NULL-terminated, one block of heap memory. false: a shell would do more with the line than to
 * split it (expand, redirect, begin another line ...), or a quote is not closed; *ret is
 * untouched. */
bool words_split(const char *line, char ***ret) __attribute__((warn_unused_result));

/* Whether a shell itself does what this word names, as the first of a command. */
bool words_is_built_in(const char *word);

#endif
