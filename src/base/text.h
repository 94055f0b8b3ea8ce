/*
 * text.h - text shown to people: nothing that data contains may move a terminal's cursor, and a typo gets its nearest word.
 */
#ifndef DQ_BASE_TEXT_H
#define DQ_BASE_TEXT_H

#include "base/buf.h"

#include <stddef.h>

/* Appends p made harmless for a terminal: control characters (C0, DEL, C1), bidirectional and zero-width formatting characters,
 * U+2028/2029 and invalid UTF-8 become \n \t \r \xHH or \u{HHHH}; a backslash is doubled. At most max_chars columns of output where max_chars
 * > 0; a cut is shown by "…". */
void text_escape(struct buf *b, const char *p, size_t len, size_t max_chars);

/* The word among words[0..count-1] that a person most likely meant by `word` (edit distance with transpositions, at most a third
 * of its length, at least 1), or NULL. Points into words. */
const char *text_nearest(const char *word, const char *const *words, size_t count);

#endif
