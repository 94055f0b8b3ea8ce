/*
 * json.c - every JSON that dq writes or reads. It alone uses jansson, and only to read.
 *
 * Invariant: what json_put_* appends is valid JSON in valid UTF-8 without raw control characters,
 * whatever the bytes were; what json_read_object accepts is exactly one object that fits the table.
 */
#include "base/json.h"
#include "base/mem.h"
#include "base/text.h"

#ifdef HAVE_JANSSON
#include <jansson.h>
#endif
#include <stdlib.h>
#include <string.h>

/* ---- writing */

/* Bytes that need no escape inside a string, whatever their neighbours are. */
static bool is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

static void put_escape(struct buf *b, uint32_t c)
{
    switch (c) {
    case '"':
        buf_add(b, "\\\"", 2);
        break;
    case '\\':
        buf_add(b, "\\\\", 2);
        break;
    case '\n':
        buf_add(b, "\\n", 2);
        break;
    case '\r':
        buf_add(b, "\\r", 2);
        break;
    case '\t':
        buf_add(b, "\\t", 2);
        break;
    default:
        if (c > 0xffff) {
            buf_printf(b, "\\u%04x", 0xd7c0 + (c >> 10)); /* a surrogate pair */
            c = 0xdc00 | (c & 0x3ff);
        }
        buf_printf(b, "\\u%04x", c);
    }
}

void json_put_string(struct buf *b, const char *s, size_t len)
{
    size_t run = 0; /* the beginning of the bytes that can be copied unchanged */

    buf_reserve(b, len + 2);
    buf_chr(b, '"');
    for (size_t at = 0; at < len;) {
        uint32_t c;
        if (is_plain((unsigned char)s[at])) {
            at++;
            continue;
        }
        size_t n = text_utf8_next(s + at, len - at, &c);
        /* Valid JSON all the same, but a terminal would act on it. */
        if (n && c >= 0x80 && !text_char_unsafe(c)) {
            at += n;
            continue;
        }
        buf_add(b, s + run, at - run);
        put_escape(b, n ? c : 0xfffd);
        at += n ? n : 1;
        run = at;
    }
    buf_add(b, s + run, len - run);
    buf_chr(b, '"');
}

static const char base64_digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static void put_base64(struct buf *b, const unsigned char *p, size_t len)
{
    buf_reserve(b, (len / 3 + 1) * 4);
    char *out = b->data + b->len;
    for (; len >= 3; p += 3, len -= 3) {
        *out++ = base64_digits[p[0] >> 2];
        *out++ = base64_digits[(p[0] & 3) << 4 | p[1] >> 4];
        *out++ = base64_digits[(p[1] & 15) << 2 | p[2] >> 6];
        *out++ = base64_digits[p[2] & 63];
    }
    if (len) {
        unsigned second = len == 2 ? p[1] : 0;
        *out++ = base64_digits[p[0] >> 2];
        *out++ = base64_digits[(p[0] & 3u) << 4 | second >> 4];
        *out++ = len == 2 ? base64_digits[(second & 15) << 2] : '=';
        *out++ = '=';
    }
    *out = '\0';
    b->len = (size_t)(out - b->data);
}

void json_put_bytes(struct buf *b, const char *name, const void *p, size_t len)
{
    bool text = json_utf8_valid(p, len, NULL, NULL);

    buf_chr(b, '"');
    buf_str(b, name);
    buf_str(b, text ? "\":" : "_base64\":\"");
    if (text) {
        json_put_string(b, p, len);
    } else {
        put_base64(b, p, len);
        buf_chr(b, '"');
    }
}

bool json_utf8_valid(const char *s, size_t len, size_t *ret_chars, size_t *ret_bad)
{
    size_t chars = 0, at = 0;
    bool valid = true;

    while (at < len) {
        uint64_t eight;
        uint32_t c;
        if (len - at >= sizeof eight) {
            memcpy(&eight, s + at, sizeof eight);
            if (!(eight & UINT64_C(0x8080808080808080))) {
                at += sizeof eight;
                chars += sizeof eight;
                continue;
            }
        }
        size_t n = text_utf8_next(s + at, len - at, &c);
        if (!n) {
            valid = false;
            break;
        }
        at += n;
        chars++;
    }
    if (ret_chars)
        *ret_chars = chars;
    if (ret_bad && !valid)
        *ret_bad = at;
    return valid;
}

/* ---- reading */

#ifdef HAVE_JANSSON
struct json_reader {
    json_t *root;            /* the last object: texts point into it */
    struct buf bytes;        /* decoded base64 of the last object */
    signed char base64[256]; /* value of a digit, -1: none */
};

struct json_reader *json_reader_new(void)
{
    struct json_reader *r = mem_zero(1, sizeof *r);

    memset(r->base64, -1, sizeof r->base64);
    for (int i = 0; i < 64; i++)
        r->base64[(unsigned char)base64_digits[i]] = (signed char)i;
    return r;
}

void json_reader_free(struct json_reader *r)
{
    if (!r)
        return;
    json_decref(r->root);
    buf_done(&r->bytes);
    free(r);
}

/* Appends the decoded bytes and a NUL; there is room. Strict: whole groups of four, padding only at
 * the end, unused bits zero. */
static bool decode_base64(struct json_reader *r, const char *text, size_t len)
{
    char *out = r->bytes.data + r->bytes.len;
    size_t pad = 0;

    if (len % 4)
        return false;
    while (pad < 2 && len > pad && text[len - pad - 1] == '=')
        pad++;
    for (size_t at = 0; at < len; at += 4) {
        uint32_t group = 0;
        size_t unused = at + 4 == len ? pad : 0;
        for (size_t i = 0; i < 4; i++) {
            int v = i < 4 - unused ? r->base64[(unsigned char)text[at + i]] : 0;
            if (v < 0)
                return false;
            group = group << 6 | (uint32_t)v;
        }
        if (group & ((1u << 8 * unused) - 1))
            return false;
        *out++ = (char)(group >> 16);
        if (unused < 2)
            *out++ = (char)(group >> 8);
        if (unused < 1)
            *out++ = (char)group;
    }
    *out++ = '\0';
    r->bytes.len = (size_t)(out - r->bytes.data);
    return true;
}

static int unknown_member(const char *key, const struct json_member *members, size_t count,
                          struct err *err)
{
    MEM_LOCAL const char **names = mem_alloc((count + 1) * sizeof *names);
    BUF_LOCAL struct buf shown = BUF_INIT;

    for (size_t i = 0; i < count; i++)
        names[i] = members[i].name;
    text_escape(&shown, key, strlen(key), 40);
    const char *nearest = text_nearest(key, names, count);
    if (nearest)
        err_set(err, ERR_DATA, "unknown member \"%s\" (did you mean \"%s\"?)", shown.data, nearest);
    else
        err_set(err, ERR_DATA, "unknown member \"%s\"", shown.data);
    return ERR_DATA;
}

/* The member that key stands for, NULL if none. *ret_base64: it is the encoded form. */
static const struct json_member *find_member(const char *key, const struct json_member *members,
                                             size_t count, bool *ret_base64)
{
    for (size_t i = 0; i < count; i++) {
        size_t n = strlen(members[i].name);
        if (strncmp(key, members[i].name, n))
            continue;
        *ret_base64 = members[i].type == JSON_BYTES && !strcmp(key + n, "_base64");
        if (!key[n] || *ret_base64)
            return &members[i];
    }
    return NULL;
}

static int read_value(struct json_reader *r, const struct json_member *m, bool base64, json_t *json,
                      struct json_value *v, struct err *err)
{
    static const char *const expected[] = {
        [JSON_TEXT] = "a string",
        [JSON_BYTES] = "a string",
        [JSON_INT] = "an integer",
        [JSON_BOOL] = "true or false",
    };
    if (m->type == JSON_ANY) {
        v->present = true;
        return 0;
    }
    bool is_text = m->type == JSON_TEXT || m->type == JSON_BYTES;
    const char *suffix = base64 ? "_base64" : "";

    if (v->present)
        return err_set(err, ERR_DATA, "\"%s\" and \"%s_base64\" cannot be combined", m->name,
                       m->name);
    if (is_text               ? !json_is_string(json)
        : m->type == JSON_INT ? !json_is_integer(json)
                              : !json_is_boolean(json))
        return err_set(err, ERR_DATA, "\"%s%s\" must be %s", m->name, suffix, expected[m->type]);
    v->present = true;
    if (!is_text) {
        v->number = m->type == JSON_INT ? json_integer_value(json) : json_is_true(json);
        return 0;
    }
    v->text = json_string_value(json);
    v->len = json_string_length(json);
    if (m->type == JSON_TEXT && memchr(v->text, '\0', v->len))
        return err_set(err, ERR_DATA, "\"%s\" must not contain a NUL character", m->name);
    if (base64) {
        size_t start = r->bytes.len;
        if (!decode_base64(r, v->text, v->len))
            return err_set(err, ERR_DATA, "\"%s_base64\" is not base64 (RFC 4648, padded)",
                           m->name);
        v->text = r->bytes.data + start;
        v->len = r->bytes.len - start - 1;
    }
    return 0;
}

/* Replaces the reader's object by the one in line. */
static int parse_line(struct json_reader *r, const char *line, size_t len, struct err *err)
{
    json_error_t fault;
    size_t blanks = 0;

    json_decref(r->root);
    r->root = NULL;
    while (blanks < len && strchr(" \t\r\n", line[blanks]) && line[blanks])
        blanks++;
    if (blanks == len || line[blanks] != '{')
        return err_set(err, ERR_DATA, "not a JSON object: \"{\" expected at column %zu",
                       blanks + 1);
    r->root = json_loadb(line, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &fault);
    if (r->root)
        return 0;
    /* jansson quotes the offending text, which may be a secret. */
    char *near = strstr(fault.text, " near ");
    if (near)
        *near = '\0';
    return err_set(err, ERR_DATA, "malformed JSON: %s at column %d", fault.text,
                   fault.column > 0 ? fault.column : 1);
}

int json_read_object(struct json_reader *r, const char *line, size_t len,
                     const struct json_member *members, size_t count, struct json_value *values,
                     struct err *err)
{
    const char *key;
    json_t *json;

    if (parse_line(r, line, len, err))
        return ERR_DATA;
    memset(values, 0, count * sizeof *values);
    /* Decoded bytes are shorter than the line: the buffer does not move while values point
     * into it. */
    buf_reset(&r->bytes);
    buf_reserve(&r->bytes, len);
    json_object_foreach(r->root, key, json)
    {
        bool base64;
        const struct json_member *m = find_member(key, members, count, &base64);
        if (!m)
            return unknown_member(key, members, count, err);
        if (!json_is_null(json) && read_value(r, m, base64, json, &values[m - members], err))
            return ERR_DATA;
    }
    for (size_t i = 0; i < count; i++)
        if (members[i].required && !values[i].present)
            return err_set(err, ERR_DATA, "\"%s\" is missing", members[i].name);
    return 0;
}
#else
struct json_reader {
    char none;
};

struct json_reader *json_reader_new(void)
{
    return mem_zero(1, sizeof(struct json_reader));
}

void json_reader_free(struct json_reader *r)
{
    free(r);
}

int json_read_object(struct json_reader *r, const char *line, size_t len,
                     const struct json_member *members, size_t count, struct json_value *values,
                     struct err *err)
{
    (void)r, (void)line, (void)len, (void)members;
    memset(values, 0, count * sizeof *values);
    return err_set(err, ERR_DATA, "this build cannot read JSON: it was configured without jansson");
}
#endif
