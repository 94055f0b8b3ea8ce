/*
 * json.h - every JSON that dq writes or reads.
 *
 * Bytes in JSON: a string member NAME if the bytes are valid UTF-8, else NAME_base64. The rule
 * is the same both ways.
 */
#ifndef DQ_BASE_JSON_H
#define DQ_BASE_JSON_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Writing. */
/* Quoted and escaped, controls (C0, DEL, C1) too; s should be valid UTF-8, other bytes become
 * U+FFFD. */
void json_put_string(struct buf *b, const char *s, size_t len);
/* `"name":"..."` or `"name_base64":"..."`, no comma. */
void json_put_bytes(struct buf *b, const char *name, const void *p, size_t len);

/* True for well-formed UTF-8 (no overlong forms, no surrogates, up to U+10FFFF). *ret_chars, unless
 * NULL, gets the number of code points; *ret_bad, unless NULL, the offset of the first bad byte. */
bool json_utf8_valid(const char *s, size_t len, size_t *ret_chars, size_t *ret_bad);

/* Reading one flat object from one line, by a table of the members that may occur. */
enum json_type {
    /* string -> text (NUL-terminated, len); a NUL inside is refused unless the member is
     * JSON_BYTES */
    JSON_TEXT,
    JSON_BYTES, /* string NAME, or base64 in NAME_base64 -> text, len; the decoded bytes, any */
    JSON_INT,   /* integer, exact in 64 bits -> number */
    JSON_BOOL,  /* -> number 0 or 1 */
    JSON_ANY,   /* anything; only whether it is there is reported */
};
struct json_member {
    const char *name;
    enum json_type type;
    bool required;
};
struct json_value {
    bool present; /* null counts as absent */
    const char *text;
    size_t len;
    int64_t number;
};
/* Parses line (len bytes, one JSON object and nothing else but blanks) and fills values[i] for
 * members[i]. What text points to lives until the next call with this reader. A member that is not
 * in the table is refused with the nearest name; so are duplicates, a wrong type, a missing
 * required member, nesting. ERR_DATA; the text gives the column if the parser knows it. If dq was
 * built without jansson, every line is refused. */
struct json_reader;
struct json_reader *json_reader_new(void);
void json_reader_free(struct json_reader *r);
int json_read_object(struct json_reader *r, const char *line, size_t len,
                     const struct json_member *members, size_t count, struct json_value *values,
                     struct err *err) __attribute__((warn_unused_result));

#endif
