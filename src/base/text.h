/*
 * text.h - text shown to people: nothing that data contains may move a terminal's cursor, and a
 * typo gets its nearest word.
 */
#ifndef DQ_BASE_TEXT_H
#define DQ_BASE_TEXT_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decodes the character at p (len bytes are left): its length 1..4 and the code point in *ret,
 * or 0 if no well-formed UTF-8 begins there (overlong, surrogate, above U+10FFFF, cut off,
 * or len 0). */
size_t text_utf8_next(const char *p, size_t len, uint32_t *ret);

/* Whether it is a byte of a character after its first. */
bool text_continues(char c);
/* How much of len bytes there is without a character that is cut off there: p[len] is read. */
size_t text_cut(const char *p, size_t len);

/* Whether a terminal would act on it, reorder the line or hide it: control characters (C0, DEL,
 * C1), bidirectional and zero-width formatting, U+2028/2029. */
bool text_char_unsafe(uint32_t c);
/* Whether it shows nothing by itself: zero-width characters, marks of direction, variation
 * selectors, fillers. Two words that differ in these alone look the same. */
bool text_char_hidden(uint32_t c);
/* Unicode's White_Space. */
bool text_char_space(uint32_t c);
/* Columns that a character takes on a terminal: 0 combining, 2 wide (East Asian, emoji), else 1.
 * Independent of the locale. */
int text_char_width(uint32_t c);
/* Columns of a whole text; a byte that is not valid UTF-8 counts 1. */
size_t text_width(const char *p, size_t len);

/* Appends p made harmless for a terminal: unsafe characters and invalid UTF-8 become \n \t \r \xHH
 * or \u{HHHH}; a backslash is doubled. Cut at max_columns columns, with "…", unless max_columns is
 * 0.
 */
void text_escape(struct buf *b, const char *p, size_t len, size_t max_columns);

/* Appends the last line of a program's output that is not empty, as plain text to quote in a
 * message: sequences for terminals are left out, other unsafe characters and invalid UTF-8 become
 * '?'; cut at max bytes, at a character, with "…". A line ends with \n, \r or NUL. */
void text_last_line(struct buf *b, const char *p, size_t len, size_t max);

/* Appends s as one word of a shell's command: in single quotes, unless it needs none. Text of a
 * note has its backslashes doubled, so it adds none. */
void text_shell_word(struct buf *b, const char *s);

/* A constant as a string literal, so that a text that names it cannot go stale: "up to "
 * TEXT_OF(LINES_MAX) " lines". */
#define TEXT_OF(constant) TEXT_OF_DIGITS(constant)
#define TEXT_OF_DIGITS(digits) #digits

/* FNV-1a of the bytes, begun at TEXT_HASH_INIT or at the hash of what comes before it. */
#define TEXT_HASH_INIT UINT64_C(14695981039346656037)
uint64_t text_hash(uint64_t h, const void *bytes, size_t len);

/* The place of a name among items that are sorted by name, or the one where it belongs. */
size_t text_place(const void *items, size_t count,
                  const char *(*name_of)(const void *items, size_t i), const char *name,
                  bool *ret_found);

/* The word among words[0..count-1] that a person most likely meant by `word` (edit distance with
 * transpositions, at most a third of its length, at least 1), or NULL. Points into words. */
const char *text_nearest(const char *word, const char *const *words, size_t count);

#endif
