/*
 * conf_ini.c - dq.ini, read with inih. Invariant: inih gets the file line by line through
 * read_line, which refuses whatever inih would silently cut or join: long lines, text behind a
 * section or a " ;", continuation lines.
 */
#include "conf/conf_ini.h"

#include "base/mem.h"
#include "base/text.h"

#include <ini.h>

#include <string.h>

struct ini {
    struct conf_reading *r;
    const char *pos, *end; /* the text that is still to be read */
};

static int fail_unknown_key(struct ini *s, const char *section, const char *name)
{
    if (strcmp(name, "password") == 0)
        return conf_value_fail(
            s->r, NULL,
            "a password is not kept in this file; write it to a file of its own, chmod 600 that, and name it here: "
            "password_file = PATH");
    const char *elsewhere = conf_other_section(section, name);
    if (*section == '\0' && elsewhere)
        return conf_value_fail(s->r, NULL, "%s is outside any section; put it under [%s]", name,
                               elsewhere);
    if (*section == '\0')
        return conf_value_fail(
            s->r, NULL,
            "unknown key \"%s\" before any section; dq.ini(5) lists the sections and keys", name);
    if (elsewhere)
        return conf_value_fail(s->r, NULL, "%s is a key of [%s], not of [%s]; move it there", name,
                               elsewhere, section);
    const char *nearest = conf_nearest_key(section, name);
    if (nearest)
        return conf_value_fail(s->r, NULL, "unknown key \"%s\" in [%s]; did you mean \"%s\"?", name,
                               section, nearest);
    return conf_value_fail(s->r, NULL, "unknown key \"%s\" in [%s]; dq.ini(5) lists the keys", name,
                           section);
}

/* Called by inih for every KEY = VALUE; 0 says that the pair is wrong. */
static int take_pair(void *user, const char *section, const char *name, const char *value)
{
    struct ini *s = user;
    if (s->r->rc != 0 || !name || !value)
        return s->r->rc == 0 && !name;
    const struct conf_key *key = conf_find_key(section, name);
    if (!key)
        return fail_unknown_key(s, section, name) == 0;
    struct conf_place *place = &s->r->places[key - conf_keys];
    if (place->line != 0)
        return conf_value_fail(s->r, NULL,
                               "%s is given twice, first on line %u; remove one of them", name,
                               place->line) == 0;
    *place = s->r->at;
    return conf_value_set(s->r, key, value) == 0;
}

static int check_section(struct ini *s, const char *text, size_t len)
{
    const char *close = memchr(text, ']', len);
    if (!close || close != text + len - 1)
        return conf_value_fail(s->r, NULL, "a section is written [name] on a line of its own");
    MEM_LOCAL char *name = mem_dup(text + 1, len - 2);
    size_t count = 0;
    while (conf_sections[count] && strcmp(conf_sections[count], name) != 0)
        count++;
    if (!conf_sections[count]) {
        const char *nearest = text_nearest(name, conf_sections, count);
        if (nearest)
            conf_value_fail(s->r, NULL, "unknown section [%s]; did you mean [%s]?", name, nearest);
        else
            conf_value_fail(s->r, NULL,
                            "unknown section [%s]; there are [mysql], [dqd], [retention] and [dq]",
                            name);
    }
    return s->r->rc;
}

/* text is one line without indentation and line end, no comment and not empty. */
static int check_line(struct ini *s, const char *text, size_t len, int size)
{
    if (conf_value_check(s->r, text, len) != 0)
        return s->r->rc;
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        if (i > 0 && (c == ';' || c == '#') && (text[i - 1] == ' ' || text[i - 1] == '\t'))
            return conf_value_fail(s->r, NULL,
                                   "\" %c\" inside a line: a comment needs a line of its own", c);
    }
    if (len + 2 > (size_t)size)
        return conf_value_fail(
            s->r, NULL, "the line has %zu characters, %d are allowed; shorten it", len, size - 2);
    return text[0] == '[' ? check_section(s, text, len) : 0;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* The ini_reader: fgets(3) over the text in memory. Lines reach inih without indentation, comments
 * as empty lines. */
static char *read_line(char *out, int size, void *stream)
{
    struct ini *s = stream;
    if (s->r->rc != 0 || s->pos == s->end)
        return NULL;
    const char *text = s->pos, *newline = memchr(text, '\n', (size_t)(s->end - text));
    const char *stop = newline ? newline : s->end;
    s->pos = newline ? newline + 1 : s->end;
    if (++s->r->at.line == 1 && stop - text >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        text += 3;
    while (text < stop && is_blank(*text))
        text++;
    while (stop > text && is_blank(stop[-1]))
        stop--;
    size_t len = (size_t)(stop - text);
    if (len > 0 && (*text == ';' || *text == '#')) {
        if (memchr(text, '\r', len)) { /* what follows it would be lost without a word */
            conf_value_fail(s->r, NULL,
                            "a carriage return in a comment; end lines with a line feed");
            return NULL;
        }
        len = 0;
    }
    if (len > 0 && check_line(s, text, len, size) != 0)
        return NULL;
    memcpy(out, text, len);
    memcpy(out + len, "\n", 2);
    return out;
}

int conf_ini_read(struct conf_reading *r, const struct buf *text)
{
    int bad_line = 0;

    if (text->len > 0) {
        struct ini s = {r, text->data, text->data + text->len};
        bad_line = ini_parse_stream(read_line, &s, take_pair, &s);
    }
    if (bad_line > 0 && (r->rc == 0 || (unsigned)bad_line < r->fault_line))
        return conf_value_fail(r, &(struct conf_place){.line = (unsigned)bad_line},
                               "neither [section] nor KEY = VALUE; a comment begins with # or ;");
    if (bad_line < 0 && r->rc == 0)
        return err_set(r->err, ERR_FATAL, "%s: the INI library is out of memory", r->file);
    return r->rc;
}
