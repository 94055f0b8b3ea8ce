/*
 * text.c - text shown to people.
 *
 * Invariant: what text_escape appends contains no byte sequence that a terminal would act on, and
 * is valid UTF-8.
 */
#include "base/text.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

size_t text_utf8_next(const char *p, size_t len, uint32_t *ret)
{
    const unsigned char *s = (const unsigned char *)p;
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};

    if (!len)
        return 0;
    if (s[0] < 0x80) {
        *ret = s[0];
        return 1;
    }
    size_t n = s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0;
    if (!n || n > len)
        return 0;
    uint32_t c = s[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (s[i] & 0x3f);
    }
    if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        return 0;
    *ret = c;
    return n;
}

struct range {
    uint32_t first, last;
};

/* The blocks that matter, not every character of Unicode's tables: a wrong guess costs a crooked
 * column, nothing more. */
/* clang-format off */
static const struct range combining[] = {
    {0x0300, 0x036f}, {0x0483, 0x0489}, {0x0591, 0x05bd}, {0x0610, 0x061a},   {0x064b, 0x065f}, {0x0900, 0x0902},
    {0x0e34, 0x0e3a}, {0x0e47, 0x0e4e}, {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff},   {0x20d0, 0x20ff}, {0x302a, 0x302d},
    {0x3099, 0x309a}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}, {0xe0100, 0xe01ef},
};
/* clang-format on */
/* clang-format off */
static const struct range wide[] = {
    {0x1100, 0x115f},   {0x231a, 0x231b},   {0x23e9, 0x23ec},   {0x2614, 0x2615},   {0x2648, 0x2653},   {0x2705, 0x2705},
    {0x270a, 0x270b},   {0x2728, 0x2728},   {0x274c, 0x274c},   {0x2753, 0x2757},   {0x2e80, 0x303e},   {0x3041, 0x4dbf},
    {0x4e00, 0xa4cf},   {0xa960, 0xa97f},   {0xac00, 0xd7a3},   {0xf900, 0xfaff},   {0xfe30, 0xfe6f},   {0xff00, 0xff60},
    {0xffe0, 0xffe6},   {0x17000, 0x18d08}, {0x1b000, 0x1b2ff}, {0x1f300, 0x1f320}, {0x1f330, 0x1f64f}, {0x1f680, 0x1f6ff},
    {0x1f900, 0x1faff}, {0x20000, 0x3fffd},
};
/* clang-format on */
/* Characters that move the cursor, reorder the line or hide: controls, line separators,
 * bidirectional and zero-width formatting. */
static const struct range unsafe[] = {
    {0x0000, 0x001f}, {0x007f, 0x009f}, {0x00ad, 0x00ad},   {0x061c, 0x061c},
    {0x180e, 0x180e}, {0x200b, 0x200f}, {0x2028, 0x202e},   {0x2060, 0x206f},
    {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f},
};

static const struct range spaces[] = {
    {0x0009, 0x000d}, {0x0020, 0x0020}, {0x0085, 0x0085}, {0x00a0, 0x00a0}, {0x1680, 0x1680},
    {0x2000, 0x200a}, {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000},
};

static bool in_ranges(const struct range *r, size_t count, uint32_t c)
{
    for (size_t i = 0; i < count; i++)
        if (c <= r[i].last)
            return c >= r[i].first;
    return false;
}
#define IN(ranges, c) in_ranges(ranges, sizeof(ranges) / sizeof(*(ranges)), c)

bool text_char_unsafe(uint32_t c)
{
    return IN(unsafe, c);
}

bool text_char_space(uint32_t c)
{
    return IN(spaces, c);
}

int text_char_width(uint32_t c)
{
    if (c < 0x300)
        return 1;
    return IN(combining, c) ? 0 : IN(wide, c) ? 2 : 1;
}

size_t text_width(const char *p, size_t len)
{
    size_t columns = 0;

    for (size_t at = 0; at < len;) {
        uint32_t c = '?';
        size_t n = text_utf8_next(p + at, len - at, &c);
        columns += (size_t)text_char_width(c);
        at += n ? n : 1;
    }
    return columns;
}

/* Writes the harmless form of the character or stray byte at p to out (NUL-terminated) and returns
 * how many bytes of p it stands for. */
static size_t escape_one(const char *p, size_t len, char out[16], size_t *ret_width)
{
    uint32_t c;
    size_t n = text_utf8_next(p, len, &c);

    if (n && c != '\\' && !text_char_unsafe(c)) {
        memcpy(out, p, n);
        out[n] = '\0';
        *ret_width = (size_t)text_char_width(c);
        return n;
    }
    if (!n || (c < 0x80 && !strchr("\\\n\t\r", (int)c)) || c == 0)
        snprintf(out, 16, "\\x%02X", (unsigned char)*p);
    else if (c < 0x80)
        snprintf(out, 16, "\\%c", c == '\n' ? 'n' : c == '\t' ? 't' : c == '\r' ? 'r' : '\\');
    else
        snprintf(out, 16, "\\u{%04X}", c);
    *ret_width = strlen(out);
    return n ? n : 1;
}

void text_escape(struct buf *b, const char *p, size_t len, size_t max_chars)
{
    size_t used = 0, mark = b->len; /* mark: the text is cut here, so that "…" still fits */

    buf_reserve(b, len);
    for (size_t at = 0; at < len;) {
        char out[16];
        size_t width, n = escape_one(p + at, len - at, out, &width);
        if (max_chars && used + width > max_chars) {
            b->len = mark;
            buf_str(b, "…");
            return;
        }
        buf_str(b, out);
        used += width;
        at += n;
        if (used < max_chars)
            mark = b->len;
    }
}

/* The length of the sequence for a terminal that begins with ESC at p: CSI, OSC, or two bytes. */
static size_t sequence_length(const char *p, size_t len)
{
    size_t n = 2;

    if (len > 2 && p[1] == '[') {
        while (n < len && p[n] >= 0x20 && p[n] < 0x40)
            n++;
        return n < len && p[n] >= 0x40 ? n + 1 : n;
    }
    if (len > 2 && p[1] == ']') {
        while (n < len && p[n] != '\a' && p[n] != '\033')
            n++;
        return n < len && p[n] == '\a' ? n + 1 : n;
    }
    return len < 2 ? 1 : n;
}

static void put_quoted_line(struct buf *b, const char *p, size_t len, size_t max)
{
    size_t begin = b->len, end = begin, n;

    for (size_t at = 0; at < len; at += n) {
        uint32_t c = '?';
        n = p[at] == '\033' ? 0 : text_utf8_next(p + at, len - at, &c);
        if (p[at] == '\033') {
            n = sequence_length(p + at, len - at);
            continue;
        }
        bool space = n && text_char_space(c), unsafe_one = !n || text_char_unsafe(c);
        if (space && b->len == begin)
            continue;
        size_t size = space || unsafe_one ? 1 : n;
        if (b->len - begin + size > max) {
            b->len = end;
            buf_str(b, "…");
            return;
        }
        buf_add(b, space ? " " : unsafe_one ? "?" : p + at, size);
        n = n ? n : 1;
        end = space ? end : b->len;
    }
    b->len = end;
    buf_add(b, "", 0);
}

void text_last_line(struct buf *b, const char *p, size_t len, size_t max)
{
    size_t before = b->len;

    while (len && b->len == before) {
        size_t start = len;
        while (start && p[start - 1] != '\n' && p[start - 1] != '\r' && p[start - 1] != '\0')
            start--;
        put_quoted_line(b, p + start, len - start, max);
        len = start ? start - 1 : 0;
    }
}

void text_shell_word(struct buf *b, const char *s)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-+:/@%,";

    if (*s && s[strspn(s, plain)] == '\0') {
        buf_str(b, s);
        return;
    }
    buf_chr(b, '\'');
    for (; *s; s++)
        if (*s == '\'')
            buf_str(b, "'\"'\"'");
        else
            buf_chr(b, *s);
    buf_chr(b, '\'');
}

enum { NEAREST_LONGEST = 63 };

/* Edit distance with transpositions of neighbours, letter case aside. Both at most NEAREST_LONGEST
 * long. */
static size_t distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
    size_t rows[3][NEAREST_LONGEST + 1];
    size_t *before = rows[0], *last = rows[1], *row = rows[2];

    for (size_t j = 0; j <= b_len; j++)
        last[j] = j;
    for (size_t i = 1; i <= a_len; i++) {
        row[0] = i;
        for (size_t j = 1; j <= b_len; j++) {
            bool same = tolower((unsigned char)a[i - 1]) == tolower((unsigned char)b[j - 1]);
            size_t best = last[j - 1] + !same;
            if (last[j] + 1 < best)
                best = last[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            row[j] = best;
        }
        size_t *spare = before;
        before = last;
        last = row;
        row = spare;
    }
    return last[b_len];
}

const char *text_nearest(const char *word, const char *const *words, size_t count)
{
    size_t len = strlen(word), best = len / 3 > 1 ? len / 3 : 1;
    const char *nearest = NULL;

    if (len > NEAREST_LONGEST)
        return NULL;
    /* A candidate must share something with the word: "x" is no typo of "n". */
    for (size_t i = 0; i < count; i++) {
        size_t word_len = strlen(words[i]);
        if (word_len > NEAREST_LONGEST)
            continue;
        size_t d = distance(word, len, words[i], word_len);
        if (d < len && (d < best || (d == best && !nearest))) {
            best = d;
            nearest = words[i];
        }
    }
    return nearest;
}

uint64_t text_hash(uint64_t h, const void *bytes, size_t len)
{
    const unsigned char *p = bytes;

    for (size_t i = 0; i < len; i++)
        h = (h ^ p[i]) * UINT64_C(1099511628211);
    return h;
}
