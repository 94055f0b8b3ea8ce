/*
 * pattern.c - see pattern.h. Invariant: the pattern matches the error it was made of.
 */
#include "base/pattern.h"

#include "base/text.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>
#include <sys/param.h>

/* What is quoted at greater length is a sentence, or the quotes do not belong together. */
#define QUOTED_MAX 100
/* A number of more digits is no code. */
#define CODE_DIGITS 5

/* The number after one of these words is the error itself, not an example of it. */
static const char *const code_words[] = {"status", "signal", "code", "errno", "http", "sqlstate"};

/* Before one of these, any number of three digits may be an example. */
static const char *const reply_words[] = {"error", "reply", "response", "returned", "smtp"};

/* The texts of dq's own that begin like this have numbers of the configuration up to the ')'. */
static const char timed_out[] = "timed out after ";

struct reading {
    const char *text;
    size_t len, at;
    size_t word, word_len; /* the last word before `at` that is no number */
};

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || (unsigned char)c >= 0x80;
}

static size_t word_length(const struct reading *s)
{
    size_t n = 0;
    while (s->at + n < s->len && is_word(s->text[s->at + n]))
        n++;
    return n;
}

static size_t digits(const char *p, size_t len)
{
    size_t n = 0;
    while (n < len && isdigit((unsigned char)p[n]))
        n++;
    return n;
}

static bool is_hex_id(const char *p, size_t len)
{
    bool prefixed = len > 2 && p[0] == '0' && (p[1] == 'x' || p[1] == 'X'), any_digit = prefixed;
    for (size_t i = prefixed ? 2 : 0; i < len; i++) {
        if (!isxdigit((unsigned char)p[i]))
            return false;
        any_digit |= isdigit((unsigned char)p[i]) != 0;
    }
    return any_digit;
}

/* 8-4-4-4-12 digits: the length of a UUID at s->at; 0: there is none. */
static size_t uuid_length(const struct reading *s)
{
    static const char form[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
    const size_t len = sizeof form - 1;
    if (s->len - s->at < len || (s->at + len < s->len && is_word(s->text[s->at + len])))
        return 0;
    for (size_t i = 0; i < len; i++) {
        char c = s->text[s->at + i];
        if (form[i] == '-' ? c != '-' : !isxdigit((unsigned char)c))
            return 0;
    }
    return len;
}

static bool is_among(const struct reading *s, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(words[i]) == s->word_len &&
            strncasecmp(s->text + s->word, words[i], s->word_len) == 0)
            return true;
    return false;
}
#define IS_AMONG(s, words) is_among(s, words, sizeof(words) / sizeof(words)[0])

/* Where the text of the program begins: behind "exit status 65: ". */
static size_t own_text(const struct reading *s)
{
    static const char status[] = "exit status ";
    size_t n = sizeof status - 1;

    if (strncmp(s->text, status, n) != 0)
        return 0;
    n += digits(s->text + n, s->len - n);
    return strncmp(s->text + n, ": ", 2) == 0 ? n + 2 : 0;
}

/* Whether the three digits at s->at are an answer of HTTP or SMTP: 1xx to 5xx, at the start, behind
 * one of reply_words, or before a reason, which begins with a capital: "404 Not Found". */
static bool is_reply(const struct reading *s, size_t count, bool follows)
{
    const char *p = s->text + s->at;
    size_t own = own_text(s);

    if (count != 3 || p[0] < '1' || p[0] > '5')
        return false;
    if (s->at == own)
        return !p[3] || p[3] == ' ' || p[3] == '-';
    return (follows && IS_AMONG(s, reply_words)) ||
           (p[0] >= '4' && p[3] == ' ' && isupper((unsigned char)p[4]) && p[-1] == ' ');
}

/* Whether the number at s->at follows a word of code_words: "exit status 65", "code=12",
 * "HTTP/1.1 500"; or is an answer. */
static bool is_code(const struct reading *s, size_t count)
{
    const char *between = s->text + s->word + s->word_len;
    size_t gap = (size_t)(s->text + s->at - between);
    bool follows = s->word_len > 0 && gap > 0 && gap <= 5;
    for (size_t i = 0; follows && i < gap; i++)
        follows = strchr(" :=/.#", between[i]) || isdigit((unsigned char)between[i]);
    return is_reply(s, count, follows) ||
           (follows && count <= CODE_DIGITS && IS_AMONG(s, code_words));
}

/* "5.1.1" behind an answer of SMTP: its length; 0: there is none. */
static size_t enhanced_length(const struct reading *s)
{
    const char *p = s->text + s->at;
    size_t n = 2, one, two;

    if (s->at != own_text(s) + 4 || !strchr("245", p[0]) || p[1] != '.')
        return 0;
    one = digits(p + n, s->len - s->at - n);
    if (!one || one > 3 || p[n + one] != '.')
        return 0;
    n += one + 1;
    two = digits(p + n, s->len - s->at - n);
    return two && two <= 3 && !is_word(p[n + two]) ? n + two : 0;
}

/* A star; one that follows another with nothing but a joint between them replaces it, as in
 * 10.0.0.1:3306. */
static void put_star(struct buf *b, size_t from)
{
    if (b->len > from && b->data[b->len - 1] == '*')
        return;
    if (b->len > from + 1 && b->data[b->len - 2] == '*' && strchr("-.:,/_+T", b->data[b->len - 1]))
        b->data[--b->len] = '\0';
    else
        buf_chr(b, '*');
}

/* A quoted text that ends soon, on this line: the length with its quotes; 0: none begins here. */
static size_t quoted_length(const struct reading *s)
{
    char quote = s->text[s->at];
    size_t most = MIN(s->len - s->at, (size_t)QUOTED_MAX);
    if (!strchr("\"'`", quote) || (s->at > 0 && is_word(s->text[s->at - 1])))
        return 0; /* an apostrophe */
    for (size_t i = 1; i < most; i++)
        if (s->text[s->at + i] == quote &&
            (s->at + i + 1 == s->len || !is_word(s->text[s->at + i + 1])))
            return i + 1;
    return 0;
}

/* A word without its numbers: "10m" is a star and an m. */
static void put_word(struct buf *b, struct reading *s, size_t len, size_t from)
{
    const char *p = s->text + s->at;
    size_t uuid = uuid_length(s);
    if (uuid > 0 || (is_hex_id(p, len) && digits(p, len) < len)) {
        put_star(b, from);
        s->at += uuid > 0 ? uuid : len;
        return;
    }
    if (digits(p, len) == 0) {
        s->word = s->at;
        s->word_len = len;
    }
    for (size_t i = 0; i < len;) {
        size_t n = digits(p + i, len - i);
        if (n > 0 && n == len && is_code(s, n))
            buf_add(b, p + i, n);
        else if (n > 0)
            put_star(b, from);
        else
            buf_chr(b, p[i]);
        i += n > 0 ? n : 1;
    }
    s->at += len;
}

static void put_next(struct buf *b, struct reading *s, size_t from)
{
    uint32_t c;
    size_t n = enhanced_length(s);
    if (n > 0) {
        buf_add(b, s->text + s->at, n);
        s->at += n;
        return;
    }
    n = quoted_length(s);
    if (n > 0) {
        buf_chr(b, s->text[s->at]);
        buf_chr(b, '*');
        buf_chr(b, s->text[s->at]);
        s->at += n;
        return;
    }
    n = text_utf8_next(s->text + s->at, s->len - s->at, &c);
    if (n == 0 || text_char_unsafe(c)) {
        buf_chr(b, '?');
        s->at += n ? n : 1;
    } else if ((n = word_length(s)) > 0) {
        put_word(b, s, n, from);
    } else {
        buf_chr(b, s->text[s->at++]);
    }
}

void pattern_put(struct buf *b, const char *error)
{
    struct reading s = {.text = error, .len = strlen(error)};
    size_t from = b->len;
    if (strncmp(error, timed_out, sizeof timed_out - 1) == 0 && strchr(error, ')')) {
        s.at = (size_t)(strchr(error, ')') - error) + 1;
        buf_add(b, error, s.at);
    }
    while (s.at < s.len) {
        put_next(b, &s, from);
        if (b->len - from > PATTERN_MAX) {
            b->data[b->len = text_cut(b->data, from + PATTERN_MAX)] = '\0';
            put_star(b, from);
            return;
        }
    }
}
